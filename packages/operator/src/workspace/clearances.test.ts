import { describe, expect, test } from "bun:test";

import { clearances, clearedBy } from "./clearances.ts";
import { conclude, planWorkspace } from "./plan.ts";
import { pod, ready, set, update, view, type Trait } from "./testing/views.ts";

function cleared(...traits: readonly Trait[]): string[] {
  const seen = view(...traits);
  const plan = planWorkspace(seen);
  const preparation = { state: "running" } as const;
  const { outcome } = conclude(seen, plan, plan.steps.some(({ kind }) => kind === "prepare") ? { preparation } : {});
  return clearedBy(seen, plan, outcome);
}

describe("a pass over a Workspace clears", () => {
  test("the Updates that wait, where the pod has read what is there now", () => {
    expect(cleared(set(), pod(), ready(), update("waiting"), update("ended"))).toEqual(["team/waiting-0"]);
  });

  test("none where the pod is to be replaced, for a Secret that has changed perhaps", () => {
    expect(cleared(set({ builtHash: "of before" }), pod(), ready(), update("waiting"))).toEqual([]);
  });

  test("none while another one runs: nothing was read", () => {
    expect(cleared(set(), pod(), ready(), update("onPod"), update("waiting"), withoutInputs)).toEqual([]);
  });

  test("none that came after it began", () => {
    expect(cleared(set(), pod(), ready())).toEqual([]);
  });
});

const withoutInputs: Trait = (each) => {
  const { inputs: _, ...rest } = each;
  return rest;
};

test("an Update is woken when it is cleared, once, and not cleared any more when others are", () => {
  const woken: string[] = [];
  const all = clearances((key) => woken.push(key));
  expect(all.has("team/web", "team/a")).toBe(false);
  all.set("team/web", ["team/a"]);
  all.set("team/web", ["team/a", "team/b"]);
  expect(woken).toEqual(["team/a", "team/b"]);
  expect(all.has("team/web", "team/a")).toBe(true);
  expect(all.has("team/other", "team/a")).toBe(false);
  all.set("team/web", []);
  expect(all.has("team/web", "team/a")).toBe(false);
});
