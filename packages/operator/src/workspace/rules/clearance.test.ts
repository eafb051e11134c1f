import { describe, expect, test } from "bun:test";

import type { Preparation } from "../../agents/agents.ts";
import { clearedUpdates } from "./clearance.ts";
import { planWorkspace } from "./index.ts";
import { given, input, pod, ready, set, update, view, without, type Trait } from "../testing/views.ts";

const done: Preparation = {
  state: "done",
  result: {
    ok: true,
    prepared: {
      preparation: "sha256:a",
      revision: "abc",
      stack: "dev",
      project: { name: "web", runtime: "yaml" },
      pulumiVersion: "3.259.0",
      changed: { source: false, dependencies: false, stack: false, config: false },
      timings: { source: 0, install: 0, stack: 0, config: 0 },
    },
  },
};
const noSource = input({ requested: { kind: "incomplete", message: "there is no Program web", soon: true } });

/** Like the engine, plans again with the preparation that its first step finds. */
function cleared(traits: readonly Trait[], preparation: Preparation = done): string[] {
  const observed = view(...traits);
  const plan = planWorkspace(observed);
  if (!plan.steps.some(({ kind }) => kind === "prepare")) return clearedUpdates(observed, plan);
  const replanned = view(...traits, given({ preparation }));
  return clearedUpdates(replanned, planWorkspace(replanned));
}

const serving = [set(), pod(), ready()];

describe("a pass over a Workspace clears", () => {
  test("the waiting Updates if the pod has prepared the current inputs", () => {
    expect(cleared([...serving, update("waiting"), update("ended")])).toEqual(["team/waiting-0"]);
  });

  test("none if the pod must be replaced, for example because a Secret has changed", () => {
    expect(cleared([set({ builtHash: "of before" }), pod(), ready(), update("waiting")])).toEqual([]);
  });

  test("none while another Update runs, because nothing was read", () => {
    expect(cleared([...serving, update("onPod"), update("waiting"), without("inputs")])).toEqual([]);
  });

  test("none that was created after it started", () => {
    expect(cleared(serving)).toEqual([]);
  });

  test.each<[string, Preparation]>([
    ["is in progress", { state: "running" }],
    ["waits for a run", { state: "busy", message: "a run is active" }],
    ["has not reached the agent", { state: "unreachable", message: "timeout", sinceMs: Date.now() }],
    [
      "was superseded",
      {
        state: "done",
        result: { ok: false, failure: { phase: "source", reason: "superseded", message: "", lines: [] } },
      },
    ],
  ])("none while the preparation of the current inputs %s, although the Workspace stays ready", (_, preparation) => {
    expect(cleared([...serving, update("waiting")], preparation)).toEqual([]);
  });

  test("none before the current inputs were sent to the agent, for example because the StatefulSet is applied first", () => {
    const { written: _, ...observed } = view(...serving, update("waiting"), given({ isKnownPrepared: true }));
    const plan = planWorkspace(observed);
    expect(plan.steps.map(({ kind }) => kind)).toEqual(["restoreStatefulSet"]);
    expect(clearedUpdates(observed, plan)).toEqual([]);
  });

  test("those whose source no longer exists if it is known what the pod has prepared, and only then", () => {
    expect(cleared([...serving, noSource, update("waiting"), given({ isKnownPrepared: true })])).toEqual([
      "team/waiting-0",
    ]);
    expect(cleared([...serving, noSource, update("waiting")])).toEqual([]);
  });
});
