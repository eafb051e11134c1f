/** The program kubectl-pulumi. */
import { runCli } from "./cli.ts";
import { processIo } from "./io.ts";

const interrupt = new AbortController();
process.once("SIGINT", () => {
  interrupt.abort(new Error("interrupted"));
  // A second Ctrl-C ends the process at once.
  process.once("SIGINT", () => process.exit(130));
});

// A reader that has seen enough, such as head, closes the pipe.
process.stdout.on("error", () => process.exit(0));

process.exitCode = await runCli(process.argv.slice(2), processIo(interrupt.signal));
