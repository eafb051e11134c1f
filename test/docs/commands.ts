/** Parses the commands in `sh` blocks: only the part of the shell syntax that the pages use. */

export interface Command {
  /** Without quotes; variables are not expanded. */
  readonly words: readonly string[];
  /** The source text, for messages. */
  readonly line: string;
}

const piece =
  /(?<comment>(?<=^|\s)#[^\n]*)|(?<end>\n|&&|\|\|?|;)|(?<space>(?:[ \t]|\\\n)+)|'(?<single>[^']*)'|"(?<double>(?:\\[^]|[^"\\])*)"|(?<nested>\$\([^()]*\))|\\(?<escaped>.)|(?<plain>[^\s'"\\;|&#]|#)/gy;

/** Throws on syntax that it does not support, such as a here-document, so that no command goes unchecked. */
export function parseCommands(text: string): Command[] {
  const commands: Command[] = [];
  let [words, word, line]: [string[], string | undefined, string] = [[], undefined, ""];
  const endWord = (): void => {
    if (word !== undefined) words.push(word);
    word = undefined;
  };
  const endCommand = (): void => {
    endWord();
    if (words.length > 0) commands.push({ words, line: line.trim() });
    [words, line] = [[], ""];
  };
  let read = 0;
  for (const match of text.matchAll(piece)) {
    read = match.index + match[0].length;
    const { comment, end, space, ...parts } = match.groups ?? {};
    if (end !== undefined) endCommand();
    else if (comment === undefined) line += match[0];
    if (space !== undefined) endWord();
    const part = Object.values(parts).find((value) => value !== undefined);
    if (part !== undefined) word = (word ?? "") + part;
  }
  if (read < text.length) throw new Error(`the shell syntax is not supported: ${text.slice(read).split("\n", 1)[0]}`);
  endCommand();
  for (const { words, line } of commands) {
    if (words.some((word) => /^\d?[<>]/.test(word))) throw new Error(`redirections are not supported: ${line}`);
  }
  return commands;
}

/** The values of an option, given as `--option value` or `--option=value`. */
export function valuesOf({ words }: Command, ...names: readonly string[]): string[] {
  return words.flatMap((word, index) => {
    const name = names.find((name) => word === name || word.startsWith(`${name}=`));
    if (name === undefined) return [];
    return word === name ? (words[index + 1] ?? []) : word.slice(name.length + 1);
  });
}

/** The commands in the `sh` blocks of a text. */
export function commandsIn(text: string): string[] {
  return [...text.matchAll(/^( *)```sh\n([^]*?)^ *```$/gm)]
    .flatMap(([, indent = "", block = ""]) => parseCommands(block.replaceAll(`\n${indent}`, "\n")))
    .map(({ line }) => line);
}
