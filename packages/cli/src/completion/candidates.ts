/** What can follow on a command line: commands, options and their values. Pure; the names of objects are read elsewhere. */
import type { Command, Completion, Names, Option } from "../command.ts";

export interface Candidate {
  readonly value: string;
  readonly description?: string;
}

export type Expected =
  | { readonly kind: "candidates"; readonly candidates: readonly Candidate[] }
  /** The names of objects, which have to be read from the cluster or the kubeconfig. */
  | { readonly kind: "names"; readonly of: Names }
  | { readonly kind: "nothing" };

interface Vocabulary {
  readonly commands: readonly Command[];
  readonly globalOptions: readonly Option[];
}

/** `words` are those after the program's name; the last one is unfinished and may be empty. */
export function expectedAfter(words: readonly string[], { commands, globalOptions }: Vocabulary): Expected {
  const current = words.at(-1) ?? "";
  const before = words.slice(0, -1);
  const command = commands.find(({ name }) => name === before[0]);
  if (!command) return before.length === 0 ? among(commandCandidates(commands)) : { kind: "nothing" };
  const options = [...(command.options ?? []), ...globalOptions];
  const valued = options.find((option) => takesValue(option) && namesOf(option).includes(before.at(-1) ?? ""));
  if (valued) return completed(valued.completion, formatsOf(command, valued));
  if (current.startsWith("-")) return among(options.flatMap(optionCandidates));
  const given = positional(before.slice(1), options);
  return completed(command.args?.[given.length]?.completion);
}

const among = (candidates: readonly Candidate[]): Expected => ({ kind: "candidates", candidates });

const commandCandidates = (commands: readonly Command[]): Candidate[] =>
  commands.map(({ name, summary }) => ({ value: name, description: summary }));

const takesValue = ({ flags }: Option): boolean => flags.includes("<");
const namesOf = ({ flags }: Option): string[] => flags.match(/--?[a-zA-Z][\w-]*/g) ?? [];

const optionCandidates = (option: Option): Candidate[] =>
  namesOf(option)
    .filter((name) => name.startsWith("--"))
    .map((value) => ({ value, description: option.description }));

/** -o has more values for some commands. */
const formatsOf = ({ formats = [] }: Command, option: Option): readonly string[] =>
  namesOf(option).includes("--output") ? formats : [];

function completed(completion: Completion | undefined, more: readonly string[] = []): Expected {
  if (completion === undefined) return { kind: "nothing" };
  if (typeof completion === "string") return { kind: "names", of: completion };
  return among([...completion, ...more].map((value) => ({ value })));
}

function positional(words: readonly string[], options: readonly Option[]): string[] {
  const valued = new Set(options.filter(takesValue).flatMap(namesOf));
  return words.filter((word, at) => !word.startsWith("-") && !valued.has(words[at - 1] ?? ""));
}

/** As cobra programs answer: a candidate and its description in each line, then a directive. 4: no file names. */
export function answer(candidates: readonly Candidate[], current: string): string {
  const lines = candidates
    .filter(({ value }) => value.startsWith(current))
    .map(({ value, description }) => (description === undefined ? value : `${value}\t${description}`));
  return [...lines, ":4", ""].join("\n");
}

/** Options that were given on the unfinished line, because they select what is read. */
export function givenOption(words: readonly string[], ...names: readonly string[]): string | undefined {
  for (const [at, word] of words.entries()) {
    const name = names.find((each) => word === each || word.startsWith(`${each}=`));
    if (name !== undefined) return word === name ? words[at + 1] : word.slice(name.length + 1);
  }
  return undefined;
}
