/** Invariants of an Update's plan for random views. Seeded: a failure names the seed that reproduces it. */
import { isComplete } from "@pko/api";
import { expect, test } from "bun:test";
import { checkStatus, seededRandom, testSeed } from "@pko/testkit";

import type { Run } from "../../../packages/operator/src/agents/agents.ts";
import { isConditionTrue } from "../../../packages/operator/src/shared/objects/conditions.ts";
import type { Step } from "../../../packages/operator/src/update/steps.ts";
import { passOver } from "../../../packages/operator/src/update/testing/plans.ts";
import {
  completed,
  deletedAgo,
  finished,
  noon,
  output,
  podIs,
  podOverdue,
  refused,
  run,
  running,
  sibling,
  startedIn,
  viewOf,
  withFinalizer,
  withSpec,
  withStatus,
  workspaceIs,
  workspaceReady,
  type ViewTrait,
} from "../../../packages/operator/src/update/testing/views.ts";
import type { UpdateView } from "../../../packages/operator/src/update/view.ts";

const rounds = 20_000;
const firstSeed = testSeed("views of Updates");

test(`${rounds} random views`, () => {
  const kinds = new Set<string>();
  for (let seed = firstSeed; seed < firstSeed + rounds; seed++) {
    const view = randomView(seededRandom(seed).next);
    try {
      const pass = passOver(view);
      check(view, pass);
      kinds.add(pass.plan.outcome.kind);
      for (const { kind } of pass.plan.steps) kinds.add(kind);
    } catch (error) {
      throw new Error(`TEST_SEED=${seed}: ${JSON.stringify(view)}`, { cause: error });
    }
  }
  // The views are random enough to need every step and every outcome.
  const steps: Step["kind"][] = [
    "addFinalizer",
    "attachRun",
    "cancelRun",
    "claimSlot",
    "confirmPodDeleted",
    "confirmReady",
    "confirmStackUnknown",
    "deleteExpired",
    "followRun",
    "forgetRun",
    "removeFinalizer",
    "storeRecord",
    "storeResult",
  ];
  const outcomes = ["ended", "progressing", "stalled", "started", "unchanged", "waiting"];
  expect([...kinds].toSorted()).toEqual([...steps, ...outcomes].toSorted());
});

function check(view: UpdateView, { plan, status, isWritten }: ReturnType<typeof passOver>): void {
  for (const step of plan.steps) checkStep(view, step);
  const afterEnd = plan.steps.some(({ kind }) => kind === "removeFinalizer" || kind === "deleteExpired");
  if (isComplete(view.update)) expect(isWritten).toBe(false);
  else expect(afterEnd).toBe(false);
  if (!isWritten) return;
  checkWritten(view, status);
  if (plan.steps.length > 0) return;
  // Another pass with the written status must not write it again.
  const next = passOver({ ...view, update: { ...view.update, status } });
  expect(next.isWritten && same(next.status, status)).toBe(false);
}

function checkStep({ update, pod }: UpdateView, step: Step): void {
  const recorded = update.status?.podUid;
  if (step.kind === "followRun") {
    expect(recorded).toBe(step.pod.uid);
    expect(pod?.agent.uid).toBe(step.pod.uid);
    expect(update.metadata.deletionTimestamp).toBeUndefined();
  }
  if (step.kind === "attachRun" || step.kind === "cancelRun") expect(step.pod.uid).toBe(recorded ?? "none");
  if (step.kind === "addFinalizer") expect(recorded).toBeUndefined();
}

function checkWritten({ update, pod, slot }: UpdateView, status: NonNullable<UpdateView["update"]["status"]>): void {
  const recorded = update.status?.podUid;
  // The pod is recorded once, and only while an operation may still start.
  if (recorded !== undefined) expect(status.podUid).toBe(recorded);
  else if (status.podUid !== undefined) {
    expect(status.podUid).toBe(pod?.agent.uid ?? "none");
    expect(update.metadata.deletionTimestamp).toBeUndefined();
    expect(update.metadata.finalizers?.length).toBeGreaterThan(0);
    expect(slot.kind).toBe("held");
  }
  checkStatus({ ...update, status }, update);
  expect(JSON.stringify(status)).not.toContain("canary");
  const after = { ...update, status };
  expect(isConditionTrue(after, "Progressing") && isConditionTrue(after, "Complete")).toBe(false);
}

const same = (a: object, b: object): boolean => JSON.stringify(a) === JSON.stringify(b);

type Random = () => number;

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
      workspaceIs({ state: "idle" }),
      workspaceIs({ state: "notReady", message: "" }),
      workspaceIs({ state: "otherStack", stacks: [], isPrepared: random() < 0.5 }),
    ]),
    perhaps(0.5, podIs(pick(pods), { ip: pick(["10.0.0.1", "10.0.0.2", ""]), isDeleting: random() < 0.2 })),
    perhaps(0.2, podOverdue(random() * 1_800_000)),
    perhaps(0.2, (view) => ({ ...view, slot: { kind: "none" } })),
    perhaps(0.2, sibling("web-0", { hasStarted: true })),
    perhaps(0.5, withFinalizer),
    perhaps(0.5, startedIn(pick(pods))),
    perhaps(0.05, withStatus({ startTime: pick(["2030-01-01T00:00:00Z", "no time"]) })),
    perhaps(0.2, completed(random() * 7_200_000)),
    perhaps(0.2, withStatus({ endTime: pick(["no time", ""]) })),
    perhaps(0.3, deletedAgo(random() * 1_800_000)),
    perhaps(0.3, (view) => ({ ...view, ttlMs: pick([0, 60_000, 3_600_000]) })),
    perhaps(0.6, run(randomRun(random, pick))),
    perhaps(0.1, withSpec({ type: pick(["explode", "preview", "refresh", "destroy"]) })),
    perhaps(0.05, withSpec({ stackName: pick(["", "--yes", "org/project/stack"]) })),
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
