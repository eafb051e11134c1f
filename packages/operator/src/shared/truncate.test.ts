import { expect, test } from "bun:test";

import { truncate } from "./truncate.ts";

test("truncates at the limit, and never within a character", () => {
  expect(truncate("four", 4)).toBe("four");
  expect(truncate("five5", 4)).toBe("fiv…");
  expect(truncate("ab😀cd", 4)).toBe("ab…");
  expect(truncate("ab😀cd", 5)).toBe("ab😀…");
});
