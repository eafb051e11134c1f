/** Whatever the world looks like, an Update's plan makes sense. Seeded: a failure names the seed that shows it. */
import { expect, test } from "bun:test";
import type { UpdateStatus } from "@pko/api";
import { checkStatus } from "@pko/testkit";

import type { Run } from "../../../packages/operator/src/agents/agents.ts";
import { holds, isComplete } from "../../../packages/operator/src/update/conditions.ts";
import { planUpdate, type Plan, type Step } from "../../../packages/operator/src/update/plan.ts";
import { statusOf } from "../../../packages/operator/src/update/status.ts";
import {
  asking,
  completed,
  deletedAgo,
  finished,
  guarded,
  intendedIn,
  noon,
  output,
  podIs,
  refused,
  run,
  running,
  viewOf,
  withStatus,
  workspaceIs,
  workspaceReady,
  type ViewTrait,
} from "../../../packages/operator/src/update/testing/views.ts";
import type { UpdateView } from "../../../packages/operator/src/update/view.ts";

const rounds = 20_000;

test(`${rounds} random views`, () => {
  const steps = new Map<string, number>();
  for (let seed = 1; seed <= rounds; seed++) {
    const view = randomView(randomOf(seed));
    try {
      const plan = planUpdate(view);
      check(view, plan);
      steps.set(plan.step.kind, (steps.get(plan.step.kind) ?? 0) + 1);
    } catch (error) {
      throw new Error(`seed ${seed}: ${JSON.stringify(view)}`, { cause: error });
    }
  }
  // Every branch is met, or the views are not random enough.
  const all = ["cancel", "end", "expire", "follow", "guard", "intend", "none", "release", "report"];
  expect([...steps.keys()].toSorted()).toEqual(all);
});

function check(view: UpdateView, plan: Plan): void {
  checkStep(view, plan.step);
  const status = statusAfter(view, plan);
  if (status) checkWritten(view, status);
  if (!status || plan.step.kind !== "report") return;
  // Once more with what was written: it must not be written again.
  const { step } = planUpdate({ ...view, update: { ...view.update, status } });
  expect(step.kind === "report" && same(step.status, status)).toBe(false);
}

function checkStep({ update, pod }: UpdateView, step: Step): void {
  const recorded = update.status?.podUid;
  if (step.kind === "follow") {
    expect(recorded).toBe(step.pod.uid);
    expect(pod?.agent.uid).toBe(step.pod.uid);
    expect(update.metadata.deletionTimestamp).toBeUndefined();
  }
  if (step.kind === "cancel") expect(step.pod.uid).toBe(recorded ?? "none");
  if (step.kind === "guard") expect(recorded).toBeUndefined();
  const isForTheEnded = step.kind === "release" || step.kind === "expire";
  expect(isComplete(update) ? isForTheEnded || step.kind === "none" : !isForTheEnded).toBe(true);
}

function checkWritten({ update, pod }: UpdateView, status: UpdateStatus): void {
  const recorded = update.status?.podUid;
  // The pod is recorded once, and only where an operation may still begin.
  if (recorded !== undefined) expect(status.podUid).toBe(recorded);
  else if (status.podUid !== undefined) {
    expect(status.podUid).toBe(pod?.agent.uid ?? "none");
    expect(update.metadata.deletionTimestamp).toBeUndefined();
    expect(update.metadata.finalizers?.length).toBeGreaterThan(0);
  }
  checkStatus({ ...update, status }, update);
  expect(JSON.stringify(status)).not.toContain("canary");
  const after = { ...update, status };
  expect(holds(after, "Progressing") && holds(after, "Complete")).toBe(false);
}

const same = (a: object, b: object): boolean => JSON.stringify(a) === JSON.stringify(b);

function statusAfter(view: UpdateView, { step }: Plan) {
  if (step.kind === "report" || step.kind === "cancel" || step.kind === "intend") return step.status;
  if (step.kind !== "end") return undefined;
  return statusOf(view, { kind: "ended", ending: step.ending, kept: { notes: step.keep.notes } });
}

type Random = () => number;

/** Mulberry32. */
function randomOf(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function randomView(random: Random): UpdateView {
  const pick = <T>(choices: readonly T[]): T => {
    const choice = choices[Math.floor(random() * choices.length)];
    if (choice === undefined) throw new Error("nothing to choose from");
    return choice;
  };
  const perhaps = (chance: number, trait: ViewTrait): ViewTrait => (random() < chance ? trait : (view) => view);
  const pods = ["pod-a", "pod-b"];
  return viewOf(
    pick<ViewTrait>([
      (view) => view,
      workspaceReady,
      workspaceReady,
      workspaceIs({ state: "deleting" }),
      workspaceIs({ state: "asleep" }),
      workspaceIs({ state: "notReady", message: "" }),
      workspaceIs({ state: "otherStack", stacks: [], isPrepared: random() < 0.5 }),
    ]),
    perhaps(0.5, podIs(pick(pods), { ip: pick(["10.0.0.1", "10.0.0.2", ""]), isDeleting: random() < 0.2 })),
    perhaps(0.2, (view) => ({ ...view, before: "web-0" })),
    perhaps(0.5, guarded),
    perhaps(0.5, intendedIn(pick(pods))),
    perhaps(0.05, withStatus({ startTime: pick(["2030-01-01T00:00:00Z", "no time"]) })),
    perhaps(0.2, completed(random() * 7_200_000)),
    perhaps(0.2, withStatus({ endTime: pick(["no time", ""]) })),
    perhaps(0.3, deletedAgo(random() * 1_800_000)),
    perhaps(0.3, (view) => ({ ...view, ttlMs: pick([0, 60_000, 3_600_000]) })),
    perhaps(0.6, run(randomRun(random, pick))),
    perhaps(0.1, asking({ type: pick(["explode", "preview", "refresh", "destroy"]) })),
    perhaps(0.05, asking({ stackName: pick(["", "--yes", "org/project/stack"]) })),
    perhaps(0.3, (view) => ({ ...view, expectedResources: pick([1, 5, 100]) })),
    perhaps(0.3, (view) => ({ ...view, project: { name: "shop", runtime: "yaml" } })),
  );
}

function randomRun(random: Random, pick: <T>(choices: readonly T[]) => T): Run {
  const count = (): number => Math.floor(random() * 20);
  return pick<Run>([
    { state: "starting" },
    running({ created: count(), updated: count() }),
    running({ created: count(), current: { urn: "urn:x".repeat(count() * 40), op: "create" } }),
    { state: "unreachable", message: "no route", sinceMs: noon - count() * 1_000 },
    refused(pick(["unprepared", "busy", "notFound", "other"])),
    finished({ finishedAt: pick(["no time", "2029-01-01T00:00:00Z", "2031-01-01T00:00:00Z"]) }),
    finished({ outcome: pick(["succeeded", "failed", "cancelled", "interrupted"]) }, [output("a", "canary", true)]),
    finished({
      outcome: "failed",
      operation: pick(["up", "preview"]),
      error: { class: "programError", message: "m".repeat(count() * 800), lines: ["😀".repeat(count() * 200)] },
      output: { tail: "y".repeat(count() * 3_000), bytes: 1, truncated: random() < 0.5 },
    }),
  ]);
}
