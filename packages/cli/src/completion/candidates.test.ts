import { describe, expect, test } from "bun:test";

import { commands } from "../commands/index.ts";
import { globalOptions } from "../global-options.ts";
import { expectedAfter, givenOption } from "./candidates.ts";
import { scripts, shells } from "./scripts.ts";

function expected(...words: readonly string[]): string {
  const found = expectedAfter(words, { commands, globalOptions });
  if (found.kind === "names") return `names of ${found.of}`;
  return found.kind === "nothing" ? "nothing" : found.candidates.map(({ value }) => value).join(" ");
}

describe("what can follow", () => {
  test.each([
    [["why", ""], "names of stack"],
    [["why", "web", ""], "nothing"],
    [["why", "-n", ""], "names of namespace"],
    [["why", "-n", "shop", ""], "names of stack"],
    [["show", ""], "names of run"],
    [["logs", ""], "names of stack-or-run"],
    [["diff", ""], "names of stack-or-run"],
    [["diff", "orders-1", ""], "names of run"],
    [["get", "--context", ""], "names of context"],
    [["get", "-o", ""], "text json yaml"],
    [["completion", ""], shells.join(" ")],
    [["nonsense", ""], "nothing"],
  ])("%p", (words, text) => expect(expected(...words)).toBe(text));

  test("all commands, and the options of one", () => {
    expect(expected("")).toBe(commands.map(({ name }) => name).join(" "));
    expect(expected("approve", "--")).toContain("--reason --yes --namespace");
  });
});

test("options that were given select what is read", () => {
  expect(givenOption(["get", "-n", "shop", ""], "-n", "--namespace")).toBe("shop");
  expect(givenOption(["get", "--namespace=shop"], "-n", "--namespace")).toBe("shop");
  expect(givenOption(["get"], "-n")).toBeUndefined();
});

/** Whether the shell is installed. The scripts of the others are compared with what they must contain. */
const isInstalled = (shell: string): boolean => Bun.which(shell) !== null;

for (const shell of ["bash", "zsh", "fish"] as const) {
  test.skipIf(!isInstalled(shell))(`the script for ${shell} is valid`, () => {
    const { exitCode, stderr } = Bun.spawnSync([shell, "-n"], { stdin: Buffer.from(scripts[shell]) });
    expect([exitCode, stderr.toString()]).toEqual([0, ""]);
  });
}

test.each([
  ["bash", ["complete -F _kubectl_pulumi kubectl-pulumi"], ["{ }", "( )", "do done"]],
  ["zsh", ["#compdef kubectl-pulumi", "compdef _kubectl_pulumi kubectl-pulumi"], ["{ }", "( )", "do done"]],
  ["fish", ["complete -c kubectl-pulumi -f -a"], ["( )", "function end"]],
  ["kubectl", ["#!/bin/sh"], []],
] as const)("the script for %s has its parts, and everything that it opens is closed", (shell, parts, pairs) => {
  const script = scripts[shell];
  for (const part of [...parts, "kubectl-pulumi __complete"]) expect(script).toContain(part);
  const words = script
    .split("\n")
    .filter((line) => !line.startsWith("#"))
    .join("\n");
  for (const pair of pairs) {
    const [opened = 0, closed] = pair.split(" ").map((word) => occurrences(words, word));
    expect([pair, opened]).toEqual([pair, closed ?? 0]);
    expect(opened).toBeGreaterThan(0);
  }
});

const occurrences = (text: string, word: string): number =>
  /\w/.test(word) ? (text.match(new RegExp(`\\b${word}\\b`, "g")) ?? []).length : text.split(word).length - 1;
