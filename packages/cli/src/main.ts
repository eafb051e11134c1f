/** The program kubectl-pulumi. */
import { runCli } from "./cli.ts";
import { exitCodes } from "./errors.ts";
import { processIo } from "./io.ts";

const interrupt = new AbortController();
const outputClosed = new Error("the output is closed");

// A command that is interrupted still undoes what it must: it resumes a Stack, or deletes the child of a preview.
for (const name of ["SIGTERM", "SIGHUP"] as const) process.on(name, () => interrupt.abort(new Error(name)));
process.once("SIGINT", () => {
  interrupt.abort(new Error("SIGINT"));
  // A second Ctrl-C ends the process at once.
  process.once("SIGINT", () => process.exit(exitCodes.interrupted));
});

// A reader that has seen enough, such as head, closes the pipe; a terminal may be closed.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => interrupt.abort(outputClosed));

const exitCode = await runCli(process.argv.slice(2), processIo(interrupt.signal));
process.exitCode = interrupt.signal.reason === outputClosed ? exitCodes.success : exitCode;
