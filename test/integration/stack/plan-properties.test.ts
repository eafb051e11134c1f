/**
 * The plan of a Stack in a random world: specs, sources, Workspaces and Updates change at any time, and passes are interrupted
 * before or after their writes. The invariants always hold, and when the changes end, the Stack settles.
 */
import { describe, expect, test } from "bun:test";
import { checkStatus, testSeed } from "@pko/testkit";

import { unavailable, type SourceView } from "../../../packages/operator/src/sources/source-view.ts";
import { planStack } from "../../../packages/operator/src/stack/rules/index.ts";
import { stackStatus } from "../../../packages/operator/src/stack/status.ts";
import {
  anUpdate,
  failed,
  now as start,
  prerequisite,
  succeeded,
  viewOf,
  type Setting,
} from "../../../packages/operator/src/stack/testing/views.ts";
import type { UpdateFacts } from "../../../packages/operator/src/stack/view.ts";
import { Chance } from "./chance.ts";
import { changesSomething, isCleared, withRequest } from "./random-requests.ts";
import { driftDetections, World } from "./random-world.ts";

const sources: readonly SourceView[] = [
  { kind: "ready", revision: "1", aliases: [], spec: { program: { name: "program", generation: 1 } } },
  { kind: "ready", revision: "2", aliases: ["sha256:a"], spec: { program: { name: "program", generation: 2 } } },
  { kind: "ready", revision: "", aliases: [], spec: {} },
  { kind: "pending", what: "the first check" },
  unavailable("auth", "no"),
  unavailable("unreachable", "😀".repeat(5000)),
];

const up = { type: "up", refreshes: true };
const driftCheck = { type: "refresh", isDriftCheck: true };
const randomUpdate = (chance: Chance, name: string): UpdateFacts =>
  anUpdate({
    name,
    ...chance.of([up, up, { type: "preview" }, { type: "destroy" }, { type: "odd" }, driftCheck]),
    state: chance.of(["unfinished", "succeeded", "failed"] as const),
    hasFinalizer: chance.is(0.7),
    ...(chance.is(0.5) && { endedAt: start }),
    ...(chance.is(0.3) && { failure: "conflict" }),
    ...(chance.is(0.5) && { message: chance.of(["no", "x".repeat(50_000)]) }),
  });

const randomSpec = (chance: Chance): NonNullable<Setting["spec"]> => ({
  ...(chance.is(0.5) && { destroyOnFinalize: true }),
  ...(chance.is(0.2) && { preview: true }),
  ...(chance.is(0.2) && { protect: true }),
  ...(chance.is(0.1) && { stack: "" }),
  ...(chance.is(0.2) && { continueResyncOnCommitMatch: true }),
  ...(chance.is(0.2) && { runProgram: true }),
  ...(chance.is(0.2) && { retryOnUpdateConflict: true }),
  ...(chance.is(0.2) && { workspaceReclaimPolicy: "Delete" as const }),
  ...(chance.is(0.4) && { driftDetection: chance.of(driftDetections) }),
});

function randomSetting(chance: Chance): Setting {
  const last = chance.of([
    undefined,
    succeeded(),
    succeeded({ outputsPending: true }),
    failed(),
    failed({ failures: 7 }),
    succeeded({ type: "destroy" }),
    failed({ type: "destroy" }),
    {},
  ]);
  return {
    spec: randomSpec(chance),
    ...(last && { last }),
    ...(chance.is(0.3) && { status: { observedGeneration: 1, projectInfo: { name: "p", runtime: "yaml" } } }),
    generation: chance.of([1, 1, 2]),
    ...(chance.is(0.3) && { request: chance.of(["a", "b"]) }),
    deleting: chance.is(0.4),
    finalizer: chance.is(0.9),
    source: chance.of(sources),
    ...(chance.is(0.7) && {
      workspace: chance.of([
        "absent",
        "other",
        "preparing",
        "deleting",
        "foreign",
        { failed: "IncompatibleConfiguration" },
      ] as const),
    }),
    updates: chance.of([[], [], ["web-last"], ["web-a", "web-b"]]).map((name) => randomUpdate(chance, name)),
    cycle: chance.is(0.1) ? ["web", "base", "web"] : [],
    prerequisites: chance.is(0.2) ? [prerequisite({ last: chance.of(["none", "deployed"]), withinMs: 1 })] : [],
    missing: chance.is(0.1) ? ["there is no Secret a"] : [],
    outputs: chance.is(0.3)
      ? { kind: "read", values: [{ name: "a", secret: true, value: "canary" }], former: { data: {}, versions: {} } }
      : { kind: "none" },
  };
}

const firstSeed = testSeed("views and histories of Stacks");

describe("any view", () => {
  test("20,000 of them: no exception, a valid status, no finalizer removed too early, no secret shown", () => {
    const chance = new Chance(firstSeed);
    for (let round = 0; round < 20_000; round++) {
      const view = viewOf(randomSetting(chance));
      const plan = planStack(view);
      const status = stackStatus(view, plan);
      const after = { ...view.stack, status };
      checkStatus(after, view.stack);
      expect(JSON.stringify(status)).not.toContain("canary");
      if (plan.steps.some(({ kind }) => kind === "removeFinalizer")) {
        const { lastUpdate } = view.stack.status ?? {};
        const isDestroyed = lastUpdate?.type === "destroy" && lastUpdate.state === "succeeded";
        const { destroyOnFinalize, preview, protect } = view.stack.spec;
        const isRequired = destroyOnFinalize === true && preview !== true;
        expect(isDestroyed || !isRequired || (lastUpdate === undefined && view.updates.length === 0)).toBe(true);
        expect(isDestroyed || protect !== true).toBe(true);
      }
      if (plan.steps.some((step) => step.kind === "createUpdate" && step.trigger.type === "destroy")) {
        expect(view.stack.spec.protect).not.toBe(true);
      }
    }
  }, 180_000);

  test("5,000 of them with requests for approvals: nothing that changes resources is created without an approved plan", () => {
    const chance = new Chance(firstSeed + 2);
    let created = 0;
    for (let round = 0; round < 5000; round++) {
      const view = viewOf(withRequest(chance, randomSetting(chance)));
      const plan = planStack(view);
      checkStatus({ ...view.stack, status: stackStatus(view, plan) }, view.stack);
      for (const step of plan.steps) {
        if (step.kind !== "createUpdate" || !changesSomething(step)) continue;
        expect(isCleared(view, step)).toBe(true);
        created++;
      }
    }
    console.log(`    ${created} Updates that change resources`);
    expect(created).toBeGreaterThan(20);
  }, 180_000);

  test("the same view leads to the same plan, and a written status is not changed again", () => {
    const chance = new Chance(firstSeed + 1);
    for (let round = 0; round < 5000; round++) {
      const view = viewOf(randomSetting(chance));
      const plan = planStack(view);
      expect(planStack(view)).toEqual(plan);
      if (plan.steps.length > 0) continue;
      const status = stackStatus(view, plan);
      const later = { ...view, stack: { ...view.stack, status }, now: view.now + 1 };
      const next = planStack(later);
      if (next.steps.length === 0) expect(stackStatus(later, next)).toEqual(status);
    }
  }, 180_000);
});

interface Histories {
  readonly isGuarded?: boolean;
}

/** Each has 60 passes with disturbances, and 60 more without. */
function histories(count: number, options: Histories = {}): World[] {
  return Array.from({ length: count }, (_, index) => {
    const chance = new Chance(firstSeed + index);
    const world = new World(chance, options);
    for (let pass = 0; pass < 60 && !world.isDeleted; pass++) {
      world.pass(chance.of(["never", "never", "never", "before", "after"]));
      world.happen(false);
    }
    world.calm();
    for (let pass = 0; pass < 60 && !world.isDeleted; pass++) {
      world.pass("never");
      world.happen(true);
    }
    return world;
  });
}

function expectSettled(world: World): void {
  expect(world.stack.status?.lastUpdate?.state).toBe("succeeded");
  expect(world.stack.status?.lastUpdate?.lastSuccessfulCommit).toBe(String(world.revision));
  const before = world.stack;
  expect(world.pass("never")).toEqual([]);
  expect(world.stack).toEqual(before);
}

const sum = (worlds: readonly World[], count: (world: World) => number): number =>
  worlds.reduce((all, world) => all + count(world), 0);

/** Those that are left and have nothing to repeat. */
const restingWorlds = (worlds: readonly World[]): World[] =>
  worlds.filter(({ isDeleted, stack: { spec } }) => {
    const isPeriodic = spec.continueResyncOnCommitMatch === true || spec.driftDetection !== undefined;
    return !isDeleted && !isPeriodic;
  });

describe("any history", () => {
  test("1,000 of 60 passes: no update runs twice, none run at the same time, no destroy is skipped; then the Stack settles", () => {
    const worlds = histories(1000);
    const resting = restingWorlds(worlds);
    for (const world of resting) expectSettled(world);
    const deleted = worlds.filter(({ isDeleted }) => isDeleted).length;
    const created = sum(worlds, (world) => world.created.size);
    const corrected = sum(worlds, (world) => world.corrections);
    console.log(
      `    ${created} updates, ${deleted} Stacks deleted, ${resting.length} settled, ${corrected} corrections`,
    );
    // About half of what seeds usually lead to.
    expect(Math.min(deleted, resting.length)).toBeGreaterThan(50);
    expect(corrected).toBeGreaterThan(50);
  }, 180_000);

  test("300 of 60 passes with approvals: nothing changes without an unused approval of its plan; then the Stack settles", () => {
    const worlds = histories(300, { isGuarded: true });
    const resting = restingWorlds(worlds);
    for (const world of resting) expectSettled(world);
    const [uses, releases, refusals] = (["uses", "releases", "refusals"] as const).map((each) =>
      sum(worlds, ({ approvals }) => approvals[each]),
    );
    console.log(
      `    ${uses} Approvals used, ${releases} released, ${refusals} updates refused, ${resting.length} settled`,
    );
    expect(Math.min(uses ?? 0, releases ?? 0, refusals ?? 0, resting.length)).toBeGreaterThan(10);
  }, 180_000);
});
