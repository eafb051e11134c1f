import { expect, test } from "bun:test";
import type { NotificationFilter } from "@pko/api";

import { now, occurrenceAt } from "../testing/views.ts";
import { occurrenceFilter } from "./filter.ts";

const cases: readonly (readonly [string, NotificationFilter | undefined, boolean])[] = [
  ["everything without a filter", undefined, true],
  ["everything with empty lists", { severities: [], kinds: [], stacks: [] }, true],
  ["its severity", { severities: ["Warning", "Error"] }, true],
  ["no other severity", { severities: ["Info"] }, false],
  ["its kind", { kinds: ["UpdateFailed"] }, true],
  ["no other kind", { kinds: ["Stalled"] }, false],
  ["its name", { stacks: ["web-*"] }, true],
  ["no other name", { stacks: ["api-*"] }, false],
  ["no excluded name", { stacks: ["web-*", "!web-1"] }, false],
  ["only what matches all", { severities: ["Error"], kinds: ["Stalled"] }, false],
];
test.each(cases)("a filter selects %s", (_, filter, expected) => {
  expect(occurrenceFilter(filter)(occurrenceAt(now, { stack: "web-1" }), { left: 10_000 })).toBe(expected);
});
