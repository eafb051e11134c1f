import { describe, expect, test } from "bun:test";
import { logger, manualClock, sleep } from "@pko/kube";
import { noProgress } from "@pko/records";
import { fail, succeed, type Reply, type RunResult, type StartRequest, type StartResult } from "@pko/rpc";
import type { AgentClient, connectAgent } from "@pko/rpc/client";
import type { WatchUpdate } from "@pko/rpc/watch";

import type { AgentPod, RunPreparations, Runs } from "./agents.ts";
import { runs } from "./runs.ts";

const ca = { distrusted: () => undefined, operatorCredentials: () => ({ ca: "", cert: "", key: "" }) };
const prepared: RunPreparations = { preparationOf: () => "sha256:a", renew: () => undefined };
const pod: AgentPod = { workspace: { namespace: "team", name: "web" }, uid: "p1", restarts: 0, ip: "10.0.0.1" };
/** The same pod after its node was restarted: the sandbox is another one, and the folder of the agent is kept. */
const moved: AgentPod = { ...pod, restarts: 1, ip: "10.0.0.2" };
const request = { runId: "r1", operation: { kind: "destroy" } } as const;

const result: RunResult = {
  outcome: "interrupted",
  operation: "destroy",
  stack: "dev",
  revision: "abc",
  startedAt: "2030-01-01T00:00:00Z",
  finishedAt: "2030-01-01T00:00:01Z",
  progress: noProgress,
  changes: {},
  output: { tail: "", bytes: 0, truncated: false },
};
const finished: Reply<StartResult> = succeed({ state: "finished", lastSeq: 0, progress: noProgress, result });

const started: Reply<StartResult> = succeed({ state: "started", lastSeq: 0, progress: noProgress });

const unreachable: Reply<StartResult> = { ok: false, error: { code: "unreachable", message: "connection refused" } };

/** Follows runs of agents that respond to a start with this, by address. */
function following(replies: Readonly<Record<string, Reply<StartResult>>>, preparations: RunPreparations = prepared) {
  const clock = manualClock();
  const requests: StartRequest[] = [];
  const contacted: string[] = [];
  const connect = (({ address }: Parameters<typeof connectAgent>[0]) => {
    const start: AgentClient["start"] = async (started) => {
      contacted.push(address.host);
      requests.push(started);
      return replies[address.host] ?? unreachable;
    };
    // Only the agent that has started the run knows it.
    async function* watch(_: unknown, { signal }: { readonly signal: AbortSignal }): AsyncGenerator<WatchUpdate> {
      if (replies[address.host]?.ok) await new Promise((resolve) => signal.addEventListener("abort", resolve));
      else yield { type: "lost", error: { code: "notFound", message: "there is no such run" } };
    }
    return { start, watch, record: async () => fail("unknownMethod", "not in this test") } as unknown as AgentClient;
  }) as typeof connectAgent;
  return { followed: runs({ ca, preparations, clock, connect, wake: () => undefined }), clock, contacted, requests };
}

/** Follows a run of an agent that knows it only once a start was accepted. */
function followingOne({ start, cancel }: Pick<AgentClient, "start" | "cancel">) {
  const clock = manualClock();
  let isKnown = false;
  const starting: AgentClient["start"] = async (...args) => {
    const reply = await start(...args);
    isKnown ||= reply.ok;
    return reply;
  };
  async function* watch(_: unknown, { signal }: { readonly signal: AbortSignal }): AsyncGenerator<WatchUpdate> {
    if (isKnown) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    else yield { type: "lost", error: { code: "notFound", message: "there is no such run" } };
  }
  const connect = (() => ({ start: starting, cancel, watch }) as unknown as AgentClient) as typeof connectAgent;
  return { followed: runs({ ca, preparations: prepared, clock, connect, wake: () => undefined }), clock };
}

test("a run is started with what the pod has prepared, as soon as that is known", async () => {
  const renewed: string[] = [];
  let known: string | undefined;
  const renew = (_: AgentPod, runId: string): void => {
    renewed.push(runId);
    known = "sha256:a";
  };
  const rejected = fail("unprepared", "the workspace is not prepared for this run");
  const { followed, clock, requests } = following({ [pod.ip]: rejected }, { preparationOf: () => known, renew });
  followed.ensure(pod, request);
  await clock.advance(1000);
  expect(followed.find(pod, "r1")).toMatchObject({ state: "refused", code: "unprepared" });
  expect(renewed[0]).toBe("r1");
  expect(requests.slice(0, 2)).toEqual([
    { ...request, preparation: "" },
    { ...request, preparation: "sha256:a" },
  ]);
  await followed.stop();
});

test.each([
  ["is, if the agent prepares something, which may be outdated", {}, true],
  ["is not, if another run is active", { activeRun: "r0" }, false],
])("the workspace of a run that has to wait for its agent is prepared again: it %s", async (_, busy, isRenewed) => {
  const renewed = new Set<string>();
  const renew = (_pod: AgentPod, runId: string): void => void renewed.add(runId);
  const rejected: Reply<StartResult> = { ok: false, error: { code: "busy", message: "busy", ...busy } };
  const { followed, clock } = following({ [pod.ip]: rejected }, { preparationOf: () => "sha256:a", renew });
  followed.ensure(pod, request);
  await clock.advance(1000);
  expect(followed.find(pod, "r1")).toMatchObject({ state: "refused", code: "busy" });
  expect([...renewed]).toEqual(isRenewed ? ["r1"] : []);
  await followed.stop();
});

test("a run whose pod has another address is followed there", async () => {
  const { followed, clock, contacted } = following({ [moved.ip]: finished });
  followed.ensure(pod, request);
  await clock.advance(1000);
  expect(followed.find(pod, "r1")).toMatchObject({ state: "unreachable" });
  expect(followed.find(moved, "r1")).toBeUndefined();
  followed.ensure(moved, request);
  await clock.advance(1000);
  expect(followed.find(moved, "r1")).toMatchObject({ state: "finished", result: { outcome: "interrupted" } });
  const attempts = contacted.length;
  await clock.advance(60_000);
  expect(contacted).toHaveLength(attempts);
});

test("a run that was started is not started again, although the agent has lost its record of it", async () => {
  const { followed, clock, contacted } = following({ [pod.ip]: started });
  followed.ensure(pod, request);
  await clock.advance(1000);
  expect(followed.find(pod, "r1")).toMatchObject({ state: "running" });
  followed.ensure(moved, request);
  await clock.advance(1000);
  expect(followed.find(moved, "r1")).toMatchObject({ state: "refused", code: "notFound" });
  // Also after another restart of the node, and before the agent has responded.
  const movedAgain = { ...moved, ip: "10.0.0.3" };
  followed.ensure(movedAgain, request);
  await clock.advance(1000);
  expect(followed.find(movedAgain, "r1")).toMatchObject({ state: "refused", code: "notFound" });
  expect(contacted).toEqual([pod.ip]);
  await followed.stop();
});

test("a run whose start was overtaken by its cancellation does not exist, and is not rejected", async () => {
  let starts = 0;
  const { promise: overtaken, resolve: overtake } = Promise.withResolvers<void>();
  const cancel: AgentClient["cancel"] = async () => {
    overtake();
    return fail("notFound", "there is no such run");
  };
  const start: AgentClient["start"] = async () => {
    starts += 1;
    await overtaken;
    return fail("invalidRequest", "the request is outdated");
  };
  const { followed, clock } = followingOne({ start, cancel });
  followed.ensure(pod, request);
  await clock.advance(0);
  followed.cancel(pod, "r1");
  await clock.advance(60_000);
  expect(followed.find(pod, "r1")).toMatchObject({ state: "refused", code: "notFound" });
  expect(starts).toBe(1);
  await followed.stop();
});

test("a run is cancelled also if the agent did not know it while it was busy", async () => {
  const calls: string[] = [];
  const { promise: overtaken, resolve: overtake } = Promise.withResolvers<void>();
  const start: AgentClient["start"] = async () => {
    calls.push("start");
    if (calls.length === 1) return fail("busy", "another run is active");
    await overtaken;
    calls.push("started");
    return started;
  };
  const cancel: AgentClient["cancel"] = async () => {
    calls.push("cancel");
    overtake();
    return calls.includes("started") ? succeed({ state: "cancelling" }) : fail("notFound", "there is no such run");
  };
  const { followed, clock } = followingOne({ start, cancel });
  followed.ensure(pod, request);
  for (let passed = 0; calls.length < 2 && passed < 60; passed += 1) await clock.advance(1000);
  expect(followed.find(pod, "r1")).toMatchObject({ state: "refused", code: "busy" });
  followed.cancel(pod, "r1");
  await clock.advance(60_000);
  expect(calls).toEqual(["start", "start", "cancel", "started", "cancel"]);
  await followed.stop();
});

test("the line about an unexpected error names the namespace, the Workspace and the run", async () => {
  const lines: string[] = [];
  const connect = (() => ({ start: () => Promise.reject(new Error("unexpected")) })) as unknown as typeof connectAgent;
  const log = logger({ write: (line) => lines.push(line) });
  const clock = manualClock();
  const followed = runs({ ca, preparations: prepared, clock, connect, log, wake: () => undefined });
  followed.ensure(pod, request);
  await clock.advance(0);
  await followed.stop();
  expect(lines.map((line): unknown => JSON.parse(line))).toMatchObject([
    { msg: "following a run failed unexpectedly", namespace: "team", workspace: "web", run: "r1" },
  ]);
});

test("a run stays followed while its pod has no address, or the address is not known", async () => {
  const { followed, clock } = following({});
  followed.ensure(pod, request);
  await clock.advance(1000);
  expect(followed.find({ uid: "p1", ip: "" }, "r1")).toMatchObject({ state: "unreachable" });
  expect(followed.find({ uid: "p1" }, "r1")).toMatchObject({ state: "unreachable" });
  expect(followed.find({ uid: "p2" }, "r1")).toBeUndefined();
  await followed.stop();
});

test("a result that was read is kept, whatever happens to the pod's address", async () => {
  const { followed, clock } = following({ [pod.ip]: finished });
  followed.ensure(pod, request);
  await clock.advance(1000);
  expect(followed.find(moved, "r1")).toMatchObject({ state: "finished" });
});

test.each([
  ["are not requested", undefined, Number.MAX_SAFE_INTEGER],
  ["are requested for whoever reads every event", () => undefined, 1],
])("the events of a run that was started before %s", async (_, onEvent, expected) => {
  const clock = manualClock();
  const requested: number[] = [];
  async function* watch({ fromSeq }: { readonly fromSeq: number }): AsyncGenerator<WatchUpdate> {
    requested.push(fromSeq);
    yield { type: "result", seq: 1, result };
  }
  const record = async () => fail("unknownMethod", "not in this test");
  const connect = (() => ({ watch, record }) as unknown as AgentClient) as typeof connectAgent;
  const followed = runs({
    ca,
    preparations: prepared,
    clock,
    connect,
    wake: () => undefined,
    ...(onEvent && { onEvent }),
  });
  followed.attach(pod, "r1");
  await clock.advance(1000);
  expect(requested).toEqual([expected]);
  expect(followed.find(pod, "r1")).toMatchObject({ state: "finished" });
});

describe("the progress of a run that was started before is not that of events which are sent again", () => {
  const created = (urn: string) =>
    ({ kind: "resource", phase: "finished", op: "create", urn, resourceType: "t" }) as const;
  const steps: WatchUpdate[] = [
    { type: "event", seq: 1, time: "", event: created("urn:a") },
    { type: "event", seq: 2, time: "", event: created("urn:b") },
    { type: "progress", seq: 2, progress: { ...noProgress, created: 2 } },
    { type: "event", seq: 3, time: "", event: created("urn:c") },
  ];
  const mismatch: Reply<StartResult> = fail("runMismatch", "the run has another operation");

  test.each([
    ["if it is attached to", (followed: Runs) => followed.attach(pod, "r1")],
    [
      "if the operator that started it encodes the operation differently",
      (followed: Runs) => followed.ensure(pod, request),
    ],
  ])("%s", async (_, follow) => {
    const clock = manualClock();
    async function* watch(__: unknown, { signal }: { readonly signal: AbortSignal }): AsyncGenerator<WatchUpdate> {
      for (const step of steps) {
        await sleep(clock, 1000, signal);
        yield step;
      }
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    }
    const start = async () => mismatch;
    const connect = (() => ({ start, watch }) as unknown as AgentClient) as typeof connectAgent;
    const followed = runs({ ca, preparations: prepared, clock, connect, wake: () => undefined });
    follow(followed);
    const seen: unknown[] = [];
    for (const __ of steps) {
      await clock.advance(1000);
      const run = followed.find(pod, "r1");
      seen.push(run?.state === "running" ? run.progress.created : run?.state);
    }
    expect(seen).toEqual(["starting", "starting", 2, 3]);
    await followed.stop();
  });
});
