import { expect, test } from "bun:test";

import { applyBody } from "./apply-body.ts";

test("characters that YAML does not allow are escaped in values and keys, and decode to the same text", () => {
  const all = [0x7f, 0x80, 0x84, 0x85, 0x86, 0x9f, 0x2028, 0x2029, 0xfeff, 0xfffe, 0xffff];
  const text = String.fromCharCode(...all);
  const body = { [text]: `a${text}b`, plain: 'é😀\u00a0\\ "\n\u0000' };
  const sent = applyBody(body);
  expect(JSON.parse(sent)).toEqual(body);
  expect(sent).toContain(String.raw`a\u007f\u0080\u0084\u0085\u0086\u009f\u2028\u2029\ufeff\ufffe\uffffb`);
  expect(sent).toContain("é😀\u00a0");
  for (const code of all) expect(sent).not.toContain(String.fromCharCode(code));
});

test("a lone surrogate becomes the replacement character, and text that looks like one stays", () => {
  const sent = applyBody({ a: "x\ud83d", b: "\ude00y", c: "😀", d: String.raw`\ud83d \\ude00`, "\udfff": 1 });
  expect(JSON.parse(sent)).toEqual({ a: "x\ufffd", b: "\ufffdy", c: "😀", d: String.raw`\ud83d \\ude00`, "\ufffd": 1 });
});
