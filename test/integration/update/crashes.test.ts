/** The operator dies before or after each of its writes; the next one brings everything to the same end. */
import { describe, expect, test } from "bun:test";
import { faultProxy, waitFor } from "@pko/testkit";

import type { FakeAgent } from "./fake-agent.ts";
import { conditionsOf, dyingClient, updates, World } from "./harness.ts";

interface Story {
  readonly title: string;
  /** What happens meanwhile, whichever operator is there to see it. */
  act(world: World, agent: FakeAgent, uid: string): Promise<void>;
  /** Whether all is over. */
  isOver(world: World): Promise<boolean>;
}

const begun = async (agent: FakeAgent, uid: string): Promise<void> => {
  await waitFor(() => agent.begun.includes(uid), { timeoutMs: 20_000, what: "the run to begin" });
};

const released = async (world: World): Promise<boolean> => {
  const update = await world.find("web-1");
  return conditionsOf(update)["Complete"]?.startsWith("True") === true && !update?.metadata.finalizers;
};

const stories: readonly Story[] = [
  {
    title: "a run that succeeds",
    async act(_, agent, uid) {
      await begun(agent, uid);
      agent.tell(uid, { kind: "resource", phase: "finished", op: "create", urn: "urn:a", resourceType: "t" });
      agent.finish(uid, {
        operation: "preview",
        output: { tail: "x".repeat(20_000), bytes: 20_000, truncated: false },
      });
    },
    isOver: released,
  },
  {
    title: "a pod that is replaced",
    async act(world, agent, uid) {
      await begun(agent, uid);
      await world.deletePod("web");
      await world.pod("web");
    },
    isOver: released,
  },
  {
    title: "an Update that is deleted while it runs",
    async act(world, agent, uid) {
      await begun(agent, uid);
      await world.client.delete(updates, world.ref("web-1"));
    },
    isOver: async (world) => (await world.find("web-1")) === undefined,
  },
];

interface Death {
  readonly nth: number;
  readonly when: "before" | "after";
}

interface End {
  readonly isDead: boolean;
  readonly state: object;
}

async function tell(story: Story, death: Death): Promise<End> {
  await using world = await World.make();
  const agent = await world.workspace("web");
  agent.outputs.push({ name: "password", value: "canary", secret: true, known: true });
  const dying = dyingClient(world.rights.client, death.nth, death.when);
  const first = world.operator(dying.client);
  const uid = await world.update("web-1", { type: "preview" });
  const acting = story.act(world, agent, uid);
  const over = waitFor(() => story.isOver(world), {
    timeoutMs: 30_000,
    what: `the end after ${JSON.stringify(death)}`,
  });
  const isDead = await Promise.race([dying.died.then(() => true), over.then(() => false)]);
  if (isDead) {
    await first.stop();
    world.operator();
  }
  await Promise.all([acting, over]);
  return { isDead, state: await stateOf(world, agent) };
}

/** All that is left, without what differs from time to time. */
async function stateOf(world: World, agent: FakeAgent): Promise<object> {
  const update = await world.find("web-1");
  const { startTime, endTime, podUid, conditions, ...told } = update?.status ?? {};
  const secrets = await Promise.all(["web-1-stack-outputs", "web-1-stdout"].map((name) => world.secret(name)));
  return {
    told,
    hasTimes: [startTime, endTime, podUid].map((value) => value !== undefined),
    conditions: (conditions ?? []).map(({ type, status, reason, message }) => ({ type, status, reason, message })),
    secrets: secrets.map((secret) => secret && { data: secret.data, annotations: secret.metadata.annotations }),
    began: [...world.agents].map(({ begun }) => begun.length),
    wasCancelled: agent.begun.some((runId) => agent.isCancelled(runId)),
  };
}

for (const story of stories) {
  describe(story.title, () => {
    test("ends the same wherever the operator dies", async () => {
      const undisturbed = await tell(story, { nth: Number.POSITIVE_INFINITY, when: "before" });
      expect(undisturbed.isDead).toBe(false);
      let deaths = 0;
      for (let nth = 1; nth < 30; nth++) {
        const ends = await Promise.all([tell(story, { nth, when: "before" }), tell(story, { nth, when: "after" })]);
        for (const { isDead, state } of ends) {
          if (isDead) deaths += 1;
          expect({ nth, state }).toEqual({ nth, state: undisturbed.state });
        }
        if (ends.every(({ isDead }) => !isDead)) break;
      }
      expect(deaths).toBeGreaterThan(5);
    }, 240_000);
  });
}

test("an operator that hears no answer to any of its first writes comes to the same end", async () => {
  await using world = await World.make();
  await using proxy = await faultProxy(world.rights.credentials);
  const seen = new Set<string>();
  proxy.on(({ isWrite, method, path }) => {
    const write = `${method} ${path}`;
    if (!isWrite || seen.has(write)) return undefined;
    seen.add(write);
    return { cut: "after" };
  });
  const agent = await world.workspace("web");
  agent.outputs.push({ name: "password", value: "canary", secret: true, known: true });
  world.operator(world.rights.connect(proxy.credentials));
  const uid = await world.update("web-1");
  await begun(agent, uid);
  agent.finish(uid);
  await waitFor(() => released(world), { timeoutMs: 30_000, what: "the end" });
  expect(conditionsOf(await world.find("web-1"))).toMatchObject({ Complete: "True/Updated" });
  expect((await world.find("web-1"))?.status?.outputs).toBe("web-1-stack-outputs");
  expect(agent.begun).toEqual([uid]);
  expect(seen.size).toBeGreaterThanOrEqual(3);
});
