/** Two hundred slow runs at the same time, followed by one operator with ten workers, none of which a run blocks. */
import { expect, test } from "bun:test";
import { waitFor } from "@pko/testkit";

import type { FakeAgent } from "./fake-agent.ts";
import { conditionsOf, updates, UpdateScene } from "./scene.ts";

const count = 200;
const testTimeoutMs = { timeoutMs: 90_000 };

test(`${count} slow runs at the same time`, async () => {
  await using scene = await UpdateScene.open();
  const numbers = Array.from({ length: count }, (_, index) => index);
  const agents: FakeAgent[] = [];
  for (const index of numbers) agents.push(await scene.workspace(`w${index}`));
  const before = process.memoryUsage.rss();
  scene.operator();
  const startedAt = performance.now();
  const uids = await Promise.all(numbers.map((index) => scene.update(`u${index}`, { workspaceName: `w${index}` })));
  // More runs than workers: they can only all start if none blocks a worker.
  await waitFor(() => agents.every((agent) => agent.started.length === 1), { ...testTimeoutMs, what: "all to start" });
  const allStartedMs = performance.now() - startedAt;
  const memory = (process.memoryUsage.rss() - before) / 2 ** 20;
  for (const [index, agent] of agents.entries()) agent.finish(uids[index] ?? "");
  const finishing = performance.now();
  await waitFor(() => allOver(scene), { ...testTimeoutMs, pollMs: 200, what: "all to end" });
  const allEndedMs = performance.now() - finishing;
  expect(agents.every((agent, index) => agent.started.length === 1 && agent.started[0] === uids[index])).toBe(true);
  console.info(
    `${count} runs: started in ${allStartedMs.toFixed(0)} ms, ended in ${allEndedMs.toFixed(0)} ms, ${memory.toFixed(0)} MB for both ends`,
  );
}, 420_000);

async function allOver(scene: UpdateScene): Promise<boolean> {
  const { items } = await scene.client.list(updates, { namespace: scene.namespace });
  return items.every((update) => conditionsOf(update)["Complete"] === "True/Updated");
}
