import { expect, test } from "bun:test";

import { parseCommands, valuesOf } from "./commands.ts";

const parsedWords = (text: string): (readonly string[])[] => parseCommands(text).map(({ words }) => words);

test("parses each line as a command and ignores comments", () => {
  expect(parsedWords("# first\nmake demo   # slow\n\nmake test # slower\n")).toEqual([
    ["make", "demo"],
    ["make", "test"],
  ]);
});

test("keeps a number sign within a word", () => {
  expect(parsedWords("echo a#b")).toEqual([["echo", "a#b"]]);
});

test("joins lines that end with a backslash", () => {
  expect(parsedWords("kubectl get \\\n  stacks")).toEqual([["kubectl", "get", "stacks"]]);
});

test("keeps quoted text and command substitutions in one word", () => {
  expect(parsedWords(`a 'b c' "d e" x="f g" "at=$(date)" $(ls -l)`)).toEqual([
    ["a", "b c", "d e", "x=f g", "at=$(date)", "$(ls -l)"],
  ]);
});

test("splits commands at pipes, && and semicolons", () => {
  expect(parsedWords("a 1 | b 2 && c; d")).toEqual([["a", "1"], ["b", "2"], ["c"], ["d"]]);
});

test.each(["cat <<EOF", "echo x > file", 'echo "no end'])("rejects %s", (text) => {
  expect(() => parseCommands(text)).toThrow("not supported");
});

test("finds the values of an option in both spellings", () => {
  const [command] = parseCommands("kubectl apply -f one --filename=two");
  expect(command && valuesOf(command, "-f", "--filename")).toEqual(["one", "two"]);
});
