import { describe, expect, test } from "bun:test";

import { clearedUpdates } from "./clearance.ts";
import { planWorkspace } from "./index.ts";
import { given, pod, ready, set, update, view, without, type Trait } from "../testing/views.ts";

/** Like the engine, plans again with the preparation that its first step finds. */
function cleared(...traits: readonly Trait[]): string[] {
  const observed = view(...traits);
  const plan = planWorkspace(observed);
  if (!plan.steps.some(({ kind }) => kind === "prepare")) return clearedUpdates(observed, plan);
  const replanned = view(...traits, given({ preparation: { state: "running" } }));
  return clearedUpdates(replanned, planWorkspace(replanned));
}

describe("a pass over a Workspace clears", () => {
  test("the waiting Updates if the pod has read the current inputs", () => {
    expect(cleared(set(), pod(), ready(), update("waiting"), update("ended"))).toEqual(["team/waiting-0"]);
  });

  test("none if the pod must be replaced, for example because a Secret has changed", () => {
    expect(cleared(set({ builtHash: "of before" }), pod(), ready(), update("waiting"))).toEqual([]);
  });

  test("none while another Update runs, because nothing was read", () => {
    expect(cleared(set(), pod(), ready(), update("onPod"), update("waiting"), without("inputs"))).toEqual([]);
  });

  test("none that was created after it started", () => {
    expect(cleared(set(), pod(), ready())).toEqual([]);
  });
});
