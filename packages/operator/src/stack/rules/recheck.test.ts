import { expect, test } from "bun:test";

import { stalled } from "../outcome.ts";
import { unchanged } from "../steps.ts";
import { now, viewOf, type Setting } from "../testing/views.ts";
import type { StackView } from "../view.ts";
import { planStack } from "./index.ts";
import { rememberedObstacle } from "./recheck.ts";

const secondsUntilNext = (setting: Setting, obstacle?: StackView["obstacle"]): number =>
  ((planStack({ ...viewOf(setting), ...(obstacle && { obstacle }) }).requeueAt ?? 0) - now) / 1000;

const unavailable: Setting = { source: { kind: "unavailable", problem: "unreachable", message: "no route to host" } };
const missing: Setting = { missing: ["there is no Secret token"] };

test.each<[string, Setting, StackView["obstacle"], number]>([
  ["an unavailable source soon", unavailable, undefined, 15],
  ["a missing input soon", missing, undefined, 15],
  [
    "less often the longer the source is unavailable",
    unavailable,
    { reason: "SourceUnavailable", since: now - 400_000 },
    100,
  ],
  ["less often the longer the input is missing", missing, { reason: "SpecInvalid", since: now - 400_000 }, 100],
  ["every five minutes in the end", unavailable, { reason: "SourceUnavailable", since: now - 86_400_000 }, 300],
  ["soon if it was stalled for another reason", unavailable, { reason: "UpdateFailed", since: now - 400_000 }, 15],
])("checks %s", (...[, setting, obstacle, seconds]) => {
  expect(secondsUntilNext(setting, obstacle)).toBe(seconds);
});

test("not all Stacks check at the same time", () => {
  const view = viewOf(unavailable);
  const other = { ...view, stack: { ...view.stack, metadata: { ...view.stack.metadata, uid: "another" } } };
  expect(planStack(other).requeueAt).not.toBe(planStack(view).requeueAt);
});

test("remembers since when the Stack is stalled for a reason, until the reason changes", () => {
  const view = viewOf({});
  const [blocked, other] = [stalled("OwnershipConflict", "taken"), stalled("SpecInvalid", "invalid")];
  expect(rememberedObstacle(view, blocked)).toEqual({ reason: "OwnershipConflict", since: now });
  const obstacle = { reason: "OwnershipConflict", since: now - 1000 } as const;
  const later = { ...view, obstacle };
  expect(rememberedObstacle(later, blocked)).toEqual(obstacle);
  expect(rememberedObstacle(later, unchanged)).toEqual(obstacle);
  expect(rememberedObstacle(later, other)).toEqual({ reason: "SpecInvalid", since: now });
  expect(rememberedObstacle(later, { kind: "processing", message: "" })).toBeUndefined();
});
