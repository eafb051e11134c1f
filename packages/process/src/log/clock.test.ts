import { expect, test } from "bun:test";

import { processClock } from "./clock.ts";

test("a time that has passed is due at once, without a warning of the runtime", async () => {
  const warnings: unknown[] = [];
  const onWarning = (warning: unknown): void => void warnings.push(warning);
  process.on("warning", onWarning);
  const due = Promise.withResolvers<void>();
  processClock.after(-0.01, due.resolve);
  await due.promise;
  process.off("warning", onWarning);
  expect(warnings).toEqual([]);
});
