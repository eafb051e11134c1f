import { expect, test } from "bun:test";

import { now, occurrenceAt } from "../testing/views.ts";
import { advance, cursorAt, isNewTo, lateMs, maxMarks } from "./cursor.ts";

const second = 1000;

test("what happened before a Notification was created is not new, what happens from then on is", () => {
  const isNew = isNewTo(cursorAt(now));
  expect([isNew(occurrenceAt(now - second)), isNew(occurrenceAt(now)), isNew(occurrenceAt(now + second))]).toEqual([
    false,
    true,
    true,
  ]);
});

test("what is done is not new, and what becomes known late is", () => {
  const [sent, late] = [occurrenceAt(now + 60 * second), occurrenceAt(now + 30 * second, { stack: "late" })];
  const isNew = isNewTo(advance(cursorAt(now), [sent], []));
  expect([isNew(sent), isNew(late), isNew(occurrenceAt(sent.time, { stack: "other" }))]).toEqual([false, true, true]);
});

test("the cursor forgets marks that its time replaces", () => {
  const first = occurrenceAt(now);
  const second = occurrenceAt(now + 2 * lateMs, { stack: "api" });
  const cursor = advance(advance(cursorAt(now), [first], []), [second], []);
  expect(cursor.time).toBe("2030-01-01T12:05:00Z");
  expect(cursor.done?.map(({ marks }) => marks.length)).toEqual([8]);
  expect(isNewTo(cursor)(first)).toBe(false);
});

test("the cursor does not pass what is left", () => {
  const left = occurrenceAt(now, { stack: "left" });
  const sent = occurrenceAt(now + 2 * lateMs);
  const isNew = isNewTo(advance(cursorAt(now - second), [sent], [left]));
  expect([isNew(left), isNew(sent)]).toEqual([true, false]);
});

test("the cursor stays small, and repeats nothing, however much happens", () => {
  let cursor = cursorAt(now);
  const all = Array.from({ length: 3 * maxMarks }, (_, index) =>
    occurrenceAt(now + Math.floor(index / 100) * second, { stack: `stack-${index}` }),
  );
  for (let from = 0; from < all.length; from += 500) cursor = advance(cursor, all.slice(from, from + 500), []);
  expect(all.filter(isNewTo(cursor))).toEqual([]);
  expect(JSON.stringify(cursor).length).toBeLessThan(10 * maxMarks);
});
