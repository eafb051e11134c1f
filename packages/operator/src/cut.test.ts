import { expect, test } from "bun:test";

import { cut } from "./cut.ts";

test("a text is cut at its limit, and never within a character", () => {
  expect(cut("four", 4)).toBe("four");
  expect(cut("five5", 4)).toBe("fiv…");
  expect(cut("ab😀cd", 4)).toBe("ab…");
  expect(cut("ab😀cd", 5)).toBe("ab😀…");
});
