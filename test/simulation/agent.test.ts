import type { PrepareRequest, PrepareResult } from "@pko/rpc";
import { expect, test } from "bun:test";

import { seededRandom } from "../../packages/kube/testing/seeded-random.ts";
import { SimulatedAgent } from "./agent.ts";
import { Backend } from "./backend.ts";
import { VirtualTime } from "./virtual-time.ts";

const ignored = (): void => {};

function simulatedAgent() {
  const time = new VirtualTime(seededRandom(1));
  const started: string[] = [];
  const agent = new SimulatedAgent({
    process: time.process("agent"),
    backend: new Backend({ onViolation: ignored, onWrite: ignored }),
    random: seededRandom(2),
    hostname: "web-workspace-0",
    where: "east team/web-workspace-0",
    sourceProblem: () => undefined,
    mayFail: () => false,
    isDiskFull: () => false,
    onStart: ({ content }) => started.push(content),
    onLost: ignored,
    secretOutput: "secret",
  });
  return { time, agent, started };
}

const requestWith = (size: string): PrepareRequest => ({
  source: { kind: "git", url: "https://git.example.com/shop.git", commit: "c0ffee", shallow: false },
  stacks: [
    {
      name: "web",
      create: true,
      config: [{ key: "shop:size", value: { from: "value", value: size } }],
      environments: [],
    },
  ],
});

async function preparationOf(reply: ReturnType<SimulatedAgent["prepare"]>): Promise<string> {
  const { ok, value } = (await reply) as { readonly ok: boolean; readonly value?: PrepareResult };
  return ok && value?.ok ? (value.prepared.preparation ?? "") : "";
}

test("a preparation is superseded by a different request, as in the real agent", async () => {
  const { time, agent, started } = simulatedAgent();
  const first = agent.prepare(requestWith("1"));
  await time.run(10);
  const second = agent.prepare(requestWith("2"));
  await time.run(10_000);
  expect(await first).toMatchObject({ ok: true, value: { ok: false, failure: { reason: "superseded" } } });
  expect(await second).toMatchObject({ ok: true, value: { ok: true } });
  agent.start({ runId: "run", stack: "web", operation: { kind: "preview" }, preparation: await preparationOf(second) });
  expect(started).toEqual(["c0ffee shop:size=2"]);
});

test("a run does not start with what another request has prepared, as in the real agent", async () => {
  const { time, agent, started } = simulatedAgent();
  const wanted = agent.prepare(requestWith("2"));
  await time.run(10_000);
  const outdated = agent.prepare(requestWith("1"));
  await time.run(10_000);
  const start = (preparation: string) =>
    agent.start({ runId: "run", stack: "web", operation: { kind: "preview" }, preparation });
  expect(start(await preparationOf(wanted))).toMatchObject({ ok: false, error: { code: "unprepared" } });
  expect(start(await preparationOf(outdated))).toMatchObject({ ok: true, value: { state: "started" } });
  expect(started).toEqual(["c0ffee shop:size=1"]);
});

test("a run that was reported as unknown does not start, as in the real agent", async () => {
  const { time, agent, started } = simulatedAgent();
  const prepared = agent.prepare(requestWith("1"));
  await time.run(10_000);
  const preparation = await preparationOf(prepared);
  const start = (runId: string) => agent.start({ runId, stack: "web", operation: { kind: "preview" }, preparation });
  expect(agent.cancel("cancelled")).toMatchObject({ ok: false, error: { code: "notFound" } });
  expect(agent.find("watched")).toBeUndefined();
  for (const runId of ["cancelled", "watched"])
    expect(start(runId)).toMatchObject({ ok: false, error: { code: "invalidRequest" } });
  expect(start("next")).toMatchObject({ ok: true });
  expect(started).toEqual(["c0ffee shop:size=1"]);
});

test("the same request joins the current preparation", async () => {
  const { time, agent } = simulatedAgent();
  const both = [agent.prepare(requestWith("1")), agent.prepare(requestWith("1"))];
  await time.run(10_000);
  for (const reply of await Promise.all(both)) expect(reply).toMatchObject({ ok: true, value: { ok: true } });
  expect(agent.phases).toEqual([]);
});
