import { expect, test } from "bun:test";

import { attempt } from "./shell.ts";
import { together } from "./together.ts";

test("the first failure interrupts the other commands, and is thrown when they have ended", async () => {
  const abort = new AbortController();
  const { promise: failing, reject } = Promise.withResolvers<void>();
  const other = attempt(["sleep", "60"], { signal: abort.signal });
  let ended = false;
  const end = other.then(() => (ended = true));
  const all = together(abort, [failing, end]);
  reject(new Error("no space left"));
  expect(await all.catch(String)).toBe("Error: no space left");
  expect(ended).toBe(true);
  expect((await other).code).not.toBe(0);
});

test("without a failure, nothing is interrupted", async () => {
  const abort = new AbortController();
  await together(abort, [Promise.resolve(), attempt(["true"], { signal: abort.signal })]);
  expect(abort.signal.aborted).toBe(false);
});
