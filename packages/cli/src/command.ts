/** The definition of a command: its arguments for the parser, help and completion, and what it does. */
import type { Context } from "./context.ts";
import type { Io } from "./io.ts";
import type { Block } from "./output/blocks.ts";

/** What a value can be completed with. */
export type Completion = Names | readonly string[];

/** The names of objects. A run is an Update, or only its record. */
export type Names = "stack" | "run" | "stack-or-run" | "namespace" | "context";

export interface Argument {
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
  readonly completion?: Completion;
}

export interface Option {
  /** As the parser expects it: `-f, --follow` or `--reason <text>`. */
  readonly flags: string;
  readonly description: string;
  readonly completion?: Completion;
}

/** What the user gave. An option without a value is true. */
export interface Input {
  readonly args: readonly (string | undefined)[];
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
}

/** What a command shows: the document for -o json and yaml, the blocks for people. */
export interface Report {
  readonly document: object;
  readonly blocks: readonly Block[];
  /** 0 if absent. */
  readonly exitCode?: number;
  /** The texts for formats of -o that only this command has, and for its default format if that is not blocks. */
  readonly renderings?: Readonly<Record<string, string>>;
}

interface Described {
  readonly name: string;
  readonly summary: string;
  /** More than the summary, for the help of the command. */
  readonly details?: string;
  readonly group: Group;
  readonly args?: readonly Argument[];
  readonly options?: readonly Option[];
  /** Formats of -o besides text, json and yaml. */
  readonly formats?: readonly string[];
  /** Whether it takes -A; with "and-namespace", also together with -n. */
  readonly allNamespaces?: "alone" | "and-namespace";
}

export const groups = ["See", "Control", "Administer"] as const;
export type Group = (typeof groups)[number];

/** Returns nothing if it has written its output itself, because it streams it. */
type Run<On> = (on: On, input: Input) => Promise<Report | undefined>;

export interface Command extends Described {
  readonly run: Run<Context>;
  /** Instead of `run` if `isLocal`: works without a cluster and a kubeconfig. */
  readonly runLocally?: Run<Io>;
  readonly isLocal?: (input: Input) => boolean;
}

export const stackArgument: Argument = {
  name: "stack",
  description: "The name of the Stack.",
  required: true,
  completion: "stack",
};

export const yesOption: Option = { flags: "-y, --yes", description: "Do not ask for confirmation." };

/** A required argument. The parser has checked that it is there. */
export const argument = ({ args }: Input, at = 0): string => args[at] ?? "";

export const flag = ({ options }: Input, name: string): boolean => options[name] === true;

export function textOption({ options }: Input, name: string): string | undefined {
  const value = options[name];
  return typeof value === "string" ? value : undefined;
}
