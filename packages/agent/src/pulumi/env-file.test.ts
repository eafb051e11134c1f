import { expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryFolder } from "../testing/folders.ts";
import { parseEnvFile, readEnvFile } from "./env-file.ts";

const cases: Record<string, { text: string; value: Record<string, string> }> = {
  "plain lines, of which the last one wins": { text: "A=1\nB = two words \nA=3\n", value: { A: "3", B: "two words" } },
  "comments and blank lines": { text: "# c\n\nA=1 # note\nB=a#b\n", value: { A: "1", B: "a#b" } },
  export: { text: "export TOKEN=abc\n", value: { TOKEN: "abc" } },
  "literal single quotes": { text: "A='$HOME \\n # x'\n", value: { A: "$HOME \\n # x" } },
  "double quotes with escapes and lines": { text: 'A="a\\nb"\nB="one\ntwo"\n', value: { A: "a\nb", B: "one\ntwo" } },
  "variables set above": {
    text: 'A=1\nB=${A}2\nC="$B\\$A"\nD=$NOPE.\n',
    value: { A: "1", B: "12", C: "12$A", D: "." },
  },
  "Windows line endings": { text: "A=1\r\nB=2\r\n", value: { A: "1", B: "2" } },
  "lines that are not assignments": { text: "hello\n=x\n1A=2\nA=1", value: { A: "1" } },
  "values with equals signs": { text: "URL=https://x/?a=b&c=d\n", value: { URL: "https://x/?a=b&c=d" } },
  "empty values": { text: "A=\nB=''\n", value: { A: "", B: "" } },
};

for (const [name, { text, value }] of Object.entries(cases)) {
  test(name, () => expect(Object.entries(parseEnvFile(text) ?? {})).toEqual(Object.entries(value)));
}

test("property names of JavaScript objects are ordinary names", () => {
  expect(Object.entries(parseEnvFile("__proto__=1\nconstructor=2\n") ?? {})).toEqual([
    ["__proto__", "1"],
    ["constructor", "2"],
  ]);
});

test("a missing file is read as an empty one", async () => {
  expect(await readEnvFile(join(temporaryFolder(), "nope"))).toEqual({});
  expect(await readEnvFile(undefined)).toEqual({});
});

test("values that double in every line are rejected before they fill the memory", async () => {
  const text = `A=aaaaaaaa\n${"A=$A$A\n".repeat(60)}`;
  expect(parseEnvFile(text)).toBeUndefined();
  expect(parseEnvFile(`A=${"a".repeat(500_000)}\nB=${"$A".repeat(10_000)}\n`)).toBeUndefined();
  const file = join(temporaryFolder(), "env");
  await Bun.write(file, text);
  expect(await messageOf(readEnvFile(file))).toContain("write large values to other files");
});

test("very many blank lines are skipped in linear time", () => {
  expect(parseEnvFile(`${"\n".repeat(2_000_000)}!\nA=1`)).toEqual({ A: "1" });
});

test("a zero byte, which no program can get, is an error", async () => {
  const file = join(temporaryFolder(), "env");
  await Bun.write(file, "A=a\0b");
  expect(await messageOf(readEnvFile(file))).toContain("has a zero byte in A");
});

test("a comment is removed with all of its characters", () => {
  expect(parseEnvFile("A=1 # one\u2028two\rthree\nB=2")).toEqual({ A: "1", B: "2" });
});

const messageOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "no error",
    (error: unknown) => String(error),
  );
