import { expect, test } from "bun:test";

import { isNewer } from "./version.ts";

test.each([
  ["3.0.1", "3.0.0", true],
  ["3.10.0", "3.9.9", true],
  ["4.0.0", "3.9.9", true],
  ["3.0.0", "3.0.0", false],
  ["2.9.0", "3.0.0", false],
  ["3.0.0", "3.0.1", false],
  ["3.0.0-rc.1", "3.0.0", false],
  ["3.0.0", "3.0.0-rc.1", true],
  ["3.0.0-rc.2", "3.0.0-rc.1", true],
  ["3.0.0-rc.10", "3.0.0-rc.9", true],
  ["3.0.0-rc.1", "2.9.9", true],
  ["3.0.0-beta.1", "3.0.0-rc.1", false],
  ["3.0.0+build.2", "3.0.0+build.1", false],
  ["v3.0.1", "3.0.0", true],
  ["latest", "3.0.0", false],
  ["", "3.0.0", false],
  ["3.0.0", "", false],
])("%s is newer than %s: %p", (a, b, newer) => expect(isNewer(a, b)).toBe(newer));
