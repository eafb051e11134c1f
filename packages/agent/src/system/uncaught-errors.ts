/**
 * Logs uncaught errors (an unhandled promise, an error in a timer) and continues. The agent is PID 1 of its container: if
 * it exited, the kernel would kill the CLI in the middle of an update.
 */
import type { Log } from "./log.ts";

export function logUncaughtErrors(log: Log): void {
  const logError = (error: unknown): void => log.error("uncaught error in the agent", { error });
  process.on("unhandledRejection", logError);
  process.on("uncaughtException", logError);
}
