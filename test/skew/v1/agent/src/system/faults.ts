/**
 * The last net: a promise that nobody waits for, an error in a timer. The first process of a container takes every other
 * with it when it ends, so a fault of the agent would kill the CLI in the middle of its work. It is told, and life goes on.
 */
import { errorMessage } from "../../../rpc/src/index.ts";
import type { Log } from "./log.ts";

export function surviveFaults(log: Log): void {
  const tell = (error: unknown): void => {
    const stack = error instanceof Error ? error.stack : undefined;
    log.error("fault of the agent", { error: errorMessage(error), stack });
  };
  process.on("unhandledRejection", tell);
  process.on("uncaughtException", tell);
}
