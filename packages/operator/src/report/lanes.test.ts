import { expect, test } from "bun:test";

import { Lanes } from "./lanes.ts";

test("requests with the same key run in order, others at the same time, and a failure ends only itself", async () => {
  const lanes = new Lanes();
  const log: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = lanes.run("a", async () => {
    await gate.promise;
    log.push("first");
    throw new Error("failed");
  });
  const second = lanes.run("a", async () => void log.push("second"));
  await lanes.run("b", async () => void log.push("other"));
  expect(log).toEqual(["other"]);
  gate.resolve();
  expect(first).rejects.toThrow("failed");
  await second;
  expect(log).toEqual(["other", "first", "second"]);
});
