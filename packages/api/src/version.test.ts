import { expect, test } from "bun:test";

import { isNewer } from "./version.ts";

test.each([
  ["3.0.1", "3.0.0", true],
  ["3.10.0", "3.9.9", true],
  ["4.0.0", "3.9.9", true],
  ["3.0.0", "3.0.0", false],
  ["2.9.0", "3.0.0", false],
  ["3.0.0", "3.0.1", false],
])("%s after %s: %p", (a, b, newer) => expect(isNewer(a, b)).toBe(newer));
