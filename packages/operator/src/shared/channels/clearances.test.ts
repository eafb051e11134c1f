import { expect, test } from "bun:test";

import { clearances } from "./clearances.ts";

test("an Update is woken once when it is cleared, and is no longer cleared when only others are", () => {
  const woken: string[] = [];
  const all = clearances((key) => woken.push(key));
  expect(all.has("team/web", "team/a")).toBe(false);
  all.set("team/web", ["team/a"]);
  all.set("team/web", ["team/a", "team/b"]);
  expect(woken).toEqual(["team/a", "team/b"]);
  expect(all.has("team/web", "team/a")).toBe(true);
  expect(all.has("team/other", "team/a")).toBe(false);
  all.set("team/web", []);
  expect(all.has("team/web", "team/a")).toBe(false);
});
