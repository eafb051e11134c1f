/** From a command line to a command and its input, with commander. */
import { Command as Parser, CommanderError } from "commander";

import { groups, type Argument, type Command, type Input } from "./command.ts";
import { exitCodes } from "./errors.ts";
import { globalOptions } from "./global-options.ts";
import type { Io } from "./io.ts";

export type Parsed =
  | { readonly kind: "command"; readonly command: Command; readonly input: Input }
  /** The help or an error was shown. */
  | { readonly kind: "shown"; readonly exitCode: number };

const description = "Shows and controls the Stacks of the Pulumi Kubernetes Operator, with your own permissions.";

export async function parseArguments(args: readonly string[], commands: readonly Command[], io: Io): Promise<Parsed> {
  let parsed: Parsed | undefined;
  const root = configured(new Parser("kubectl pulumi"), io).description(description).helpCommand(false);
  for (const group of groups) {
    root.commandsGroup(`${group}:`);
    for (const command of commands.filter((each) => each.group === group)) {
      root.addCommand(parserOf(command, io, (input) => (parsed = { kind: "command", command, input })));
    }
  }
  try {
    await root.parseAsync([...args], { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return { kind: "shown", exitCode: error.exitCode === 0 ? exitCodes.success : exitCodes.usage };
  }
  return parsed ?? { kind: "shown", exitCode: exitCodes.usage };
}

function configured(parser: Parser, io: Io): Parser {
  return parser
    .exitOverride()
    .showHelpAfterError("For the arguments and options, add --help.")
    .configureOutput({
      writeOut: (text) => io.out(text),
      writeErr: (text) => io.err(text),
      getOutHelpWidth: () => io.width,
      getErrHelpWidth: () => io.width,
      getOutHasColors: () => io.color,
      outputError: (text, write) => write(text.replace(/^error: /, "Error: ")),
    });
}

function parserOf(command: Command, io: Io, take: (input: Input) => void): Parser {
  const parser = configured(new Parser(command.name), io)
    .summary(command.summary)
    .description(longDescription(command));
  for (const argument of command.args ?? []) parser.argument(notation(argument), argument.description);
  for (const { flags, description } of command.options ?? []) parser.option(flags, description);
  parser.optionsGroup("Options of all commands:");
  for (const { flags, description } of globalOptions) {
    const formats = flags.includes("--output") && command.formats ? ` Also ${command.formats.join(", ")}.` : "";
    parser.option(flags, `${description}${formats}`);
  }
  return parser.action((...given: unknown[]) => {
    const count = command.args?.length ?? 0;
    take({ args: given.slice(0, count) as Input["args"], options: parser.opts() });
  });
}

const longDescription = ({ summary, details }: Command): string =>
  details === undefined ? `${summary}.` : `${summary}.\n\n${details}`;

const notation = ({ name, required }: Argument): string => (required ? `<${name}>` : `[${name}]`);
