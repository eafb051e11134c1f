import { expect, test } from "bun:test";

import { tarOf } from "../../../packages/agent/src/testing/tar.ts";
import { seededRandom } from "../../../packages/kube/testing/seeded-random.ts";
import { decodeInput, encodeInput, smallCorpus } from "./corpus.ts";
import { counters, instrument } from "./instrument.ts";
import { minimized } from "./minimize.ts";
import { mutated } from "./mutate.ts";
import { hold, jsonOf, textOf, type Target } from "./target.ts";

const source = `
export const run = (value: number | undefined): string => {
  if (value === undefined) return "none";
  else if (value > 100) { return "many"; }
  for (const each of [1, 2]) if (each === value) return "few";
  switch (value) {
    case 7: return value > 0 && isOdd(value) ? "odd" : "even";
    default: return (value ?? 0) as unknown as string;
  }
};
function isOdd(value: number): boolean { try { return value % 2 === 1; } catch { return false; } }
`;

/** The numbers of the counters that a call increments. */
function reached(code: string, value: number | undefined): number[] {
  const counts = new Uint32Array(64);
  const javaScript = new Bun.Transpiler({ loader: "ts" })
    .transformSync(code)
    .replace(/export (const|\{[^}]*\};?)/g, (_, part: string) => (part === "const" ? part : ""));
  // oxlint-disable-next-line no-implied-eval, no-unsafe-call -- it runs the module that the test has instrumented
  new Function(counters, "value", `${javaScript}; return run(value);`)(counts, value);
  return [...counts.entries()].flatMap(([index, count]) => (count > 0 ? [index] : []));
}

test("every branch has a counter, and the module does what it did", () => {
  let next = 0;
  const { source: code, words } = instrument(source, () => next++);
  const all = [undefined, 101, 1, 7, 8].map((value) => reached(code, value).join());
  expect(new Set(all).size).toBe(all.length);
  expect(words).toEqual(["none", "many", "few", "odd", "even"]);
  expect(next).toBeGreaterThan(10);
});

test.each(["text\n", "\0binary", "base64:text", "gzip:text", "ä", Buffer.from([0xff, 0xfe]).toString("latin1")])(
  "the input %j is stored and read again",
  (text) => {
    const input = Buffer.from(text, "latin1");
    expect(Buffer.from(decodeInput(encodeInput(input)))).toEqual(input);
  },
);

test("the corpus keeps a tar, although its blocks are larger than what it keeps of text", () => {
  const tar = tarOf([{ path: "dir/file", type: "0", body: "content" }]);
  const reaching = [encodeInput(tar), "x".repeat(5000), encodeInput(Buffer.from("seed"))];
  const corpus = smallCorpus(
    { form: "bytes", seeds: ["seed"] },
    { found: { problem: "found" }, reaching: [...reaching, "found"] },
  );
  expect(corpus).toEqual({ found: { problem: "found" }, reaching: [encodeInput(tar)] });
  expect(JSON.stringify(corpus).length).toBeLessThan(400);
  expect(Buffer.from(decodeInput(encodeInput(tar)))).toEqual(tar);
});

const target = (form: Target["form"], check: Target["check"]): Target => ({
  name: "t",
  form,
  seeds: [],
  rounds: 1,
  check,
});

test("an input with a problem is minimized", async () => {
  const ofText = target("text", (input) => hold(!/a.*b/.test(textOf(input)), "no a before b"));
  const text = Buffer.from("xxaxxxbxx");
  expect(textOf(await minimized(ofText, text, "no a before b"))).toBe("ab");

  const ofJson = target("json", (input) => hold(!JSON.stringify(jsonOf(input) ?? "").includes("bad"), "not bad"));
  const json = Buffer.from('{"one":[1,2,{"two":["good","bad"]}],"three":{}}');
  expect(textOf(await minimized(ofJson, json, "not bad")).length).toBeLessThan(20);
});

test.each(["bytes", "text", "json"] as const)("the same seed changes %s in the same way", (form) => {
  const change = (seed: number): string => {
    const inputs = [Buffer.from('{"a":[1,"two"],"b":{"c":null}}')];
    const material = { random: seededRandom(seed), inputs, words: ["word"] };
    const [input = new Uint8Array()] = inputs;
    return Array.from({ length: 50 }, () =>
      textOf(
        mutated(
          input,
          target(form, () => undefined),
          material,
        ),
      ),
    ).join("\n");
  };
  expect(change(1)).toBe(change(1));
  expect(change(1)).not.toBe(change(2));
});
