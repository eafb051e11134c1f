/** The operator crashes before or after each of its writes; the next one reaches the same final state. */
import { describe, expect, test } from "bun:test";
import { faultProxy, waitFor } from "@pko/testkit";

import type { FakeAgent } from "./fake-agent.ts";
import { conditionsOf, crashingClient, updates, UpdateScene } from "./scene.ts";

interface Story {
  readonly title: string;
  /** What happens meanwhile, whichever operator runs. */
  act(scene: UpdateScene, agent: FakeAgent, uid: string): Promise<void>;
  /** Whether everything has ended. */
  isOver(scene: UpdateScene): Promise<boolean>;
}

const runStarted = async (agent: FakeAgent, uid: string): Promise<void> => {
  await waitFor(() => agent.started.includes(uid), { timeoutMs: 45_000, what: "the run to start" });
};

const finalizerRemoved = async (scene: UpdateScene): Promise<boolean> => {
  const update = await scene.find("web-1");
  return conditionsOf(update)["Complete"]?.startsWith("True") === true && !update?.metadata.finalizers;
};

const stories: readonly Story[] = [
  {
    title: "a run that succeeds",
    async act(_, agent, uid) {
      await runStarted(agent, uid);
      agent.emit(uid, { kind: "resource", phase: "finished", op: "create", urn: "urn:a", resourceType: "t" });
      agent.finish(uid, {
        operation: "preview",
        output: { tail: "x".repeat(20_000), bytes: 20_000, truncated: false },
      });
    },
    isOver: finalizerRemoved,
  },
  {
    title: "a pod that is replaced",
    async act(scene, agent, uid) {
      await runStarted(agent, uid);
      await scene.deletePod("web");
      await scene.pod("web");
    },
    isOver: finalizerRemoved,
  },
  {
    title: "an Update that is deleted while it runs",
    async act(scene, agent, uid) {
      await runStarted(agent, uid);
      await scene.client.delete(updates, scene.ref("web-1"));
    },
    isOver: async (scene) => (await scene.find("web-1")) === undefined,
  },
];

interface Crash {
  readonly nth: number;
  readonly when: "before" | "after";
}

interface End {
  readonly hasCrashed: boolean;
  readonly state: object;
}

async function play(story: Story, crash: Crash): Promise<End> {
  await using scene = await UpdateScene.open();
  const agent = await scene.workspace("web");
  agent.outputs.push({ name: "password", value: "canary", secret: true, known: true });
  const crashing = crashingClient(scene.rights.client, crash.nth, crash.when);
  const first = scene.operator({ client: crashing.client });
  const uid = await scene.update("web-1", { type: "preview" });
  const acting = story.act(scene, agent, uid);
  const over = waitFor(() => story.isOver(scene), {
    timeoutMs: 60_000,
    what: `the end after ${JSON.stringify(crash)}`,
  });
  const hasCrashed = await Promise.race([crashing.crashed.then(() => true), over.then(() => false)]);
  if (hasCrashed) {
    await first.stop();
    scene.operator();
  }
  await Promise.all([acting, over]);
  return { hasCrashed, state: await stateOf(scene, agent) };
}

/** The final state, without values that differ between runs. */
async function stateOf(scene: UpdateScene, agent: FakeAgent): Promise<object> {
  const update = await scene.find("web-1");
  const { startTime, endTime, podUid, conditions, ...fields } = update?.status ?? {};
  const secrets = await Promise.all(["web-1-stack-outputs", "web-1-stdout"].map((name) => scene.secret(name)));
  return {
    fields,
    hasTimes: [startTime, endTime, podUid].map((value) => value !== undefined),
    conditions: (conditions ?? []).map(({ type, status, reason, message }) => ({ type, status, reason, message })),
    secrets: secrets.map((secret) => secret && { data: secret.data, annotations: secret.metadata.annotations }),
    records: (await scene.records()).map(({ metadata, record: { result, message, content, changes } }) => ({
      name: metadata.name,
      isOfUpdate: metadata.ownerReferences?.[0]?.uid === update?.metadata.uid,
      result,
      message,
      content,
      changes,
    })),
    starts: [...scene.agents].map(({ started }) => started.length),
    wasCancelled: agent.started.some((runId) => agent.isCancelled(runId)),
  };
}

for (const story of stories) {
  describe(story.title, () => {
    test("reaches the same state wherever the operator crashes", async () => {
      const undisturbed = await play(story, { nth: Number.POSITIVE_INFINITY, when: "before" });
      expect(undisturbed.hasCrashed).toBe(false);
      let crashes = 0;
      for (let nth = 1; nth < 30; nth++) {
        const ends = await Promise.all([play(story, { nth, when: "before" }), play(story, { nth, when: "after" })]);
        for (const { hasCrashed, state } of ends) {
          if (hasCrashed) crashes += 1;
          expect({ nth, state }).toEqual({ nth, state: undisturbed.state });
        }
        if (ends.every(({ hasCrashed }) => !hasCrashed)) break;
      }
      expect(crashes).toBeGreaterThan(5);
    }, 240_000);
  });
}

test("an operator that gets no response to any of its first writes reaches the same state", async () => {
  await using scene = await UpdateScene.open();
  await using proxy = await faultProxy(scene.rights.credentials);
  const seen = new Set<string>();
  proxy.on(({ isWrite, method, path }) => {
    const write = `${method} ${path}`;
    if (!isWrite || seen.has(write)) return undefined;
    seen.add(write);
    return { cut: "after" };
  });
  const agent = await scene.workspace("web");
  agent.outputs.push({ name: "password", value: "canary", secret: true, known: true });
  scene.operator({ client: scene.rights.connect(proxy.credentials) });
  const uid = await scene.update("web-1");
  await runStarted(agent, uid);
  agent.finish(uid);
  await waitFor(() => finalizerRemoved(scene), { timeoutMs: 60_000, what: "the end" });
  expect(conditionsOf(await scene.find("web-1"))).toMatchObject({ Complete: "True/Updated" });
  expect((await scene.find("web-1"))?.status?.outputs).toBe("web-1-stack-outputs");
  expect(agent.started).toEqual([uid]);
  expect(seen.size).toBeGreaterThanOrEqual(3);
});
