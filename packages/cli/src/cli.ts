/** Runs one command line, and returns its exit code. */
import { stringify } from "yaml";

import type { Command, Input, Report } from "./command.ts";
import { commands } from "./commands/index.ts";
import { complete } from "./completion/complete.ts";
import { openContext, outputFormats, type GlobalOptions } from "./context.ts";
import { asCliError, exitCodes, usageError } from "./errors.ts";
import type { Io } from "./io.ts";
import { fields, text, toned } from "./output/blocks.ts";
import { render } from "./output/render.ts";
import { parseArguments } from "./parse.ts";

export async function runCli(args: readonly string[], io: Io): Promise<number> {
  try {
    if (args[0] === "__complete") {
      await complete(io, commands, args.slice(1));
      return exitCodes.success;
    }
    const parsed = await parseArguments(args, commands, io);
    return parsed.kind === "shown" ? parsed.exitCode : await runCommand(parsed.command, parsed.input, io);
  } catch (error) {
    return reportError(error, io);
  }
}

async function runCommand(command: Command, input: Input, io: Io): Promise<number> {
  const options = globalOptionsIn(input);
  const format = formatFor(command, options.output);
  assertNamespaces(command, options);
  const { runLocally, isLocal } = command;
  const report =
    runLocally && isLocal?.(input)
      ? await runLocally(io, input)
      : await command.run(await openContext(io, options), input);
  if (report) print(report, format, io);
  return report?.exitCode ?? exitCodes.success;
}

/** The parser has checked their types. */
const globalOptionsIn = ({ options }: Input): GlobalOptions => options;

function assertNamespaces({ name, allNamespaces }: Command, options: GlobalOptions): void {
  if (!options.allNamespaces) return;
  if (allNamespaces === undefined) {
    throw usageError(`${name} does not take --all-namespaces: it is about one namespace.`, "Name it with --namespace.");
  }
  if (options.namespace !== undefined && allNamespaces === "alone") {
    throw usageError("--namespace and --all-namespaces are mutually exclusive.", "Remove one of them.");
  }
}

function formatFor({ name, formats = [] }: Command, given = "text"): string {
  const allowed = [...outputFormats, ...formats];
  if (allowed.includes(given)) return given;
  throw usageError(`-o ${given} is not a format of ${name}.`, `Use one of ${allowed.join(", ")}.`);
}

function print({ document, blocks, renderings }: Report, format: string, io: Io): void {
  const rendering = renderings?.[format];
  if (rendering !== undefined) io.out(rendering);
  else if (format === "json") io.out(`${JSON.stringify(document, undefined, 2)}\n`);
  else if (format === "yaml") io.out(stringify(document, { lineWidth: 0 }));
  else io.out(render(blocks, { width: io.width, color: io.color }));
}

/** An unexpected error keeps its stack trace, for a bug report. */
function reportError(error: unknown, io: Io): number {
  if (io.signal.aborted) return exitCodes.interrupted;
  const expected = asCliError(error);
  const display = { width: io.width, color: io.color };
  if (!expected) {
    io.err(render([text(toned("bad", "Error: an unexpected error, which is a bug of this command:"))], display));
    io.err(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    return exitCodes.failure;
  }
  const { message, fix, exitCode } = expected;
  io.err(render([fields([["Error", message], ...(fix === undefined ? [] : [["Fix", fix] as const])])], display));
  return exitCode;
}
