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
    [["show", ""], "names of update"],
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

test.each(["bash"] as const)("the script for %s is valid", (shell) => {
  const { exitCode } = Bun.spawnSync([shell, "-n"], { stdin: Buffer.from(scripts[shell]) });
  expect(exitCode).toBe(0);
});
