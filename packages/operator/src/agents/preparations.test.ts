import { describe, expect, test } from "bun:test";
import { manualClock } from "@pko/kube";
import { succeed, type PrepareRequest, type PrepareResult, type Reply } from "@pko/rpc";
import type { AgentClient, connectAgent } from "@pko/rpc/client";

import type { AgentPod, Preparations } from "./agents.ts";
import { preparations } from "./preparations.ts";

const ca = { distrusted: () => undefined, operatorCredentials: () => ({ ca: "", cert: "", key: "" }) };
const pod: AgentPod = { workspace: { namespace: "team", name: "web" }, uid: "p1", restarts: 0, ip: "10.0.0.1" };

/** A workspace of which nothing is prepared, as after a restart of the operator: each renewal wakes it. */
function subject() {
  const clock = manualClock();
  let wakes = 0;
  const preparing = preparations({ ca, clock, wake: () => wakes++ });
  return { preparing, clock, wakes: () => wakes };
}

describe("a workspace that is not prepared for a run", () => {
  test("is woken less and less often while the run is attempted every second", async () => {
    const { preparing, clock, wakes } = subject();
    const wokenAt: number[] = [];
    for (let second = 0; second <= 1200; second++) {
      const before = wakes();
      preparing.renew(pod, "run-1");
      if (wakes() > before) wokenAt.push(second);
      await clock.advance(1000);
    }
    const pauses = wokenAt.slice(1).map((at, index) => at - (wokenAt[index] ?? 0));
    expect(wokenAt[0]).toBe(0);
    // With jitter, a pause is up to a fifth shorter.
    for (const [index, pause] of pauses.entries()) {
      const longest = Math.min(300, 2 ** index);
      expect(pause).toBeGreaterThanOrEqual(longest * 0.8);
      expect(pause).toBeLessThanOrEqual(longest);
    }
    expect(pauses.at(-1)).toBeGreaterThanOrEqual(240);
  });

  const immediate: Record<string, (preparing: Pick<Preparations, "renew" | "forget">) => void> = {
    "another run": (preparing) => preparing.renew(pod, "run-2"),
    "another pod": (preparing) => preparing.renew({ ...pod, uid: "p2" }, "run-1"),
    "another workspace": (preparing) =>
      preparing.renew({ ...pod, workspace: { namespace: "team", name: "api" } }, "run-1"),
    "a workspace that was forgotten": (preparing) => {
      preparing.forget(pod.workspace);
      preparing.renew(pod, "run-1");
    },
  };
  for (const [what, renew] of Object.entries(immediate)) {
    test(`is woken immediately for ${what}`, () => {
      const { preparing, wakes } = subject();
      preparing.renew(pod, "run-1");
      preparing.renew(pod, "run-1");
      expect(wakes()).toBe(1);
      renew(preparing);
      expect(wakes()).toBe(2);
    });
  }
});

const requestFor = (content: string): PrepareRequest => ({
  source: { kind: "files", files: { "Pulumi.yaml": content } },
  stacks: [],
});

const preparedAs = (preparation?: string): Reply<PrepareResult> =>
  succeed({
    ok: true,
    prepared: {
      ...(preparation !== undefined && { preparation }),
      revision: "sha256:f",
      stack: "dev",
      project: { name: "web", runtime: "yaml" },
      pulumiVersion: "3.259.0",
      changed: { source: true, dependencies: true, stack: true, config: true },
      timings: { source: 1, install: 1, stack: 1, config: 1 },
    },
  });

const failed: Reply<PrepareResult> = succeed({
  ok: false,
  failure: { phase: "source", reason: "other", message: "no such branch", lines: [] },
});

/** An agent that has a reply for some contents, and otherwise never completes. */
async function preparing(replies: Readonly<Record<string, Reply<PrepareResult>>>) {
  const clock = manualClock();
  const requested: string[] = [];
  const prepare: AgentClient["prepare"] = async ({ source }) => {
    const content = source.kind === "files" ? (source.files["Pulumi.yaml"] ?? "") : "";
    requested.push(content);
    return replies[content] ?? (await new Promise(() => undefined));
  };
  const connect = (() => ({ prepare }) as unknown as AgentClient) as typeof connectAgent;
  const subject = preparations({ ca, clock, connect, wake: () => undefined });
  const ensure = async (content: string): Promise<void> => {
    subject.ensure(pod, requestFor(content));
    await clock.advance(0);
  };
  return { subject, ensure, requested };
}

describe("what a run names as prepared", () => {
  const replies = { one: preparedAs("sha256:one"), old: preparedAs(), broken: failed };

  test("is what the agent has prepared for the last request", async () => {
    const { subject, ensure } = await preparing(replies);
    expect(subject.preparationOf(pod)).toBeUndefined();
    await ensure("one");
    expect(subject.preparationOf(pod)).toBe("sha256:one");
  });

  test("is empty if the agent is too old to name it", async () => {
    const { subject, ensure } = await preparing(replies);
    await ensure("old");
    expect(subject.preparationOf(pod)).toBe("");
  });

  test.each([
    ["while another request is in progress", "slow"],
    ["after another request has failed", "broken"],
  ])("is unknown %s", async (_, content) => {
    const { subject, ensure } = await preparing(replies);
    await ensure("one");
    await ensure(content);
    expect(subject.preparationOf(pod)).toBeUndefined();
  });

  test("is unknown for another pod, and after the workspace was forgotten", async () => {
    const { subject, ensure } = await preparing(replies);
    await ensure("one");
    expect(subject.preparationOf({ ...pod, uid: "p2" })).toBeUndefined();
    subject.forget(pod.workspace);
    expect(subject.preparationOf(pod)).toBeUndefined();
  });

  test("is requested again for a run that cannot start with it, but not while that is in progress", async () => {
    const { subject, ensure, requested } = await preparing(replies);
    await ensure("one");
    subject.renew(pod, "run-1");
    await ensure("one");
    expect(requested).toEqual(["one", "one"]);
    await ensure("slow");
    subject.renew(pod, "run-2");
    await ensure("slow");
    expect(requested).toEqual(["one", "one", "slow"]);
  });
});
