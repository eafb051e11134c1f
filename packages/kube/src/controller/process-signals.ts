/** Runs a manager as the process: signals, uncaught errors, and the exit code. */
import type { Logger } from "../telemetry/log.ts";
import type { Manager } from "./manager.ts";

/**
 * Runs until SIGTERM or SIGINT, stops gracefully, and exits with 0 if everything ended in time. A second signal exits
 * immediately. An uncaught error is logged (and so redacted) and ends the process, because its state is unknown.
 */
export async function runToExit(manager: Manager, log: Logger): Promise<never> {
  const stop = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => {
      if (stop.signal.aborted) process.exit(1);
      log.info("stopping", { signal });
      stop.abort(new Error(`${signal} received`));
    });
  }
  for (const event of ["uncaughtException", "unhandledRejection"] as const) {
    process.on(event, (error: unknown) => {
      log.error("uncaught error", { error, event });
      process.exit(1);
    });
  }
  try {
    const outcome = await manager.run(stop.signal);
    return process.exit(outcome === "clean" ? 0 : 1);
  } catch (error) {
    log.error("the process cannot continue", { error });
    return process.exit(1);
  }
}
