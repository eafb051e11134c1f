import { expect, test } from "bun:test";

import { parseCommands, valuesOf } from "./commands.ts";

const wordsOf = (text: string): (readonly string[])[] => parseCommands(text).map(({ words }) => words);

test("lines are commands, and comments are not", () => {
  expect(wordsOf("# first\nmake demo   # a while\n\nmake test # again\n")).toEqual([
    ["make", "demo"],
    ["make", "test"],
  ]);
});

test("a number sign within a word is no comment", () => {
  expect(wordsOf("echo a#b")).toEqual([["echo", "a#b"]]);
});

test("a backslash at the end goes on with the next line", () => {
  expect(wordsOf("kubectl get \\\n  stacks")).toEqual([["kubectl", "get", "stacks"]]);
});

test("quotes and substitutions hold words together", () => {
  expect(wordsOf(`a 'b c' "d e" x="f g" "at=$(date)" $(ls -l)`)).toEqual([
    ["a", "b c", "d e", "x=f g", "at=$(date)", "$(ls -l)"],
  ]);
});

test("pipes and conjunctions part commands", () => {
  expect(wordsOf("a 1 | b 2 && c; d")).toEqual([["a", "1"], ["b", "2"], ["c"], ["d"]]);
});

test.each(["cat <<EOF", "echo x > file", 'say "no end'])("%s is not understood", (text) => {
  expect(() => parseCommands(text)).toThrow("understood");
});

test("options are found in both spellings", () => {
  const [command] = parseCommands("kubectl apply -f one --filename=two");
  expect(command && valuesOf(command, "-f", "--filename")).toEqual(["one", "two"]);
});
