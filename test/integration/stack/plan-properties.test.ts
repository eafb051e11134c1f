/**
 * The Stack's plan in a world of chance: specs, sources, Workspaces and Updates change as they like, passes are cut short
 * before or after their writes. Whatever happens, the invariants hold; when it ends, the Stack comes to rest.
 */
import { describe, expect, test } from "bun:test";
import { normaliseStack, stackFinalizer, type Stack, type Workspace } from "@pko/api";
import { checkStatus } from "@pko/testkit";

import { unavailable, type SourceView } from "../../../packages/operator/src/sources/source-view.ts";
import { planStack, type Step } from "../../../packages/operator/src/stack/plan.ts";
import { statusOf } from "../../../packages/operator/src/stack/status.ts";
import {
  ago,
  anUpdate,
  failed,
  now as start,
  prerequisite,
  stackOf,
  succeeded,
  viewOf,
  type Setting,
} from "../../../packages/operator/src/stack/testing/views.ts";
import { triggerAnnotation, parseTrigger } from "../../../packages/operator/src/stack/trigger.ts";
import type { StackView, UpdateView, WorkspaceView } from "../../../packages/operator/src/stack/view.ts";

function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

class Chance {
  readonly random: () => number;
  constructor(seed: number) {
    this.random = seeded(seed);
  }
  of<T>(values: readonly T[]): T {
    return values[Math.floor(this.random() * values.length)] as T;
  }
  is(probability: number): boolean {
    return this.random() < probability;
  }
}

const sources: readonly SourceView[] = [
  { kind: "ready", revision: "1", aliases: [], spec: { program: { name: "program", generation: 1 } } },
  { kind: "ready", revision: "2", aliases: ["sha256:a"], spec: { program: { name: "program", generation: 2 } } },
  { kind: "ready", revision: "", aliases: [], spec: {} },
  { kind: "pending", what: "a look" },
  unavailable("auth", "no"),
  unavailable("unreachable", "😀".repeat(5000)),
];

function randomSetting(chance: Chance): Setting {
  const updateStates = ["running", "succeeded", "failed"] as const;
  const update = (name: string): UpdateView =>
    anUpdate({
      name,
      type: chance.of(["up", "preview", "destroy", "odd"]),
      state: chance.of(updateStates),
      held: chance.is(0.7),
      ...(chance.is(0.5) && { endedAt: start }),
      ...(chance.is(0.3) && { failure: "conflict" }),
      ...(chance.is(0.5) && { message: chance.of(["no", "x".repeat(50_000)]) }),
    });
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
    spec: {
      ...(chance.is(0.5) && { destroyOnFinalize: true }),
      ...(chance.is(0.2) && { preview: true }),
      ...(chance.is(0.1) && { stack: "" }),
      ...(chance.is(0.2) && { continueResyncOnCommitMatch: true }),
      ...(chance.is(0.2) && { runProgram: true }),
      ...(chance.is(0.2) && { retryOnUpdateConflict: true }),
      ...(chance.is(0.2) && { workspaceReclaimPolicy: "Delete" as const }),
    },
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
    updates: chance.of([[], [], [update("web-last")], [update("web-a"), update("web-b")]]),
    cycle: chance.is(0.1) ? ["web", "base", "web"] : [],
    prerequisites: chance.is(0.2) ? [prerequisite({ last: chance.of(["none", "deployed"]), withinMs: 1 })] : [],
    missing: chance.is(0.1) ? ["there is no Secret a"] : [],
    outputs: chance.is(0.3)
      ? { kind: "read", values: [{ name: "a", secret: true, value: "canary" }], former: { data: {}, versions: {} } }
      : { kind: "none" },
  };
}

describe("any view", () => {
  test("20,000 of them: no exception, a sound status, no finalizer lost, no secret told", () => {
    const chance = new Chance(1);
    for (let round = 0; round < 20_000; round++) {
      const view = viewOf(randomSetting(chance));
      const plan = planStack(view);
      const status = statusOf(view, plan);
      const after = { ...view.stack, status };
      checkStatus(after, view.stack);
      expect(JSON.stringify(status)).not.toContain("canary");
      if (plan.step.kind === "removeFinalizer") {
        const { lastUpdate } = view.stack.status ?? {};
        const isDestroyed = lastUpdate?.type === "destroy" && lastUpdate.state === "succeeded";
        const { destroyOnFinalize, preview } = view.stack.spec;
        const isAsked = destroyOnFinalize === true && preview !== true;
        expect(isDestroyed || !isAsked || (lastUpdate === undefined && view.updates.length === 0)).toBe(true);
      }
    }
  }, 60_000);

  test("the same view is the same plan, and a plan whose status is written plans no other status", () => {
    const chance = new Chance(2);
    for (let round = 0; round < 5000; round++) {
      const view = viewOf(randomSetting(chance));
      const plan = planStack(view);
      expect(planStack(view)).toEqual(plan);
      if (plan.step.kind !== "none") continue;
      const status = statusOf(view, plan);
      const again = { ...view, stack: { ...view.stack, status }, now: view.now + 1 };
      const next = planStack(again);
      if (next.step.kind === "none") expect(statusOf(again, next)).toEqual(status);
    }
  }, 60_000);
});

/** A small model of the API server and of the other controllers. */
class World {
  stack: Stack;
  now = start;
  revision = 1;
  isSourceThere = true;
  workspace: WorkspaceView = { kind: "absent" };
  updates: UpdateView[] = [];
  readonly created = new Map<string, string>();
  readonly destroys: string[] = [];
  isGone = false;
  #hasDeployed = false;
  readonly #chance: Chance;

  constructor(chance: Chance) {
    this.#chance = chance;
    const spec = {
      destroyOnFinalize: chance.is(0.7),
      continueResyncOnCommitMatch: chance.is(0.3),
      workspaceReclaimPolicy: chance.of(["Retain", "Delete"] as const),
      preview: chance.is(0.2),
    };
    this.stack = stackOf({ spec, finalizer: false });
  }

  view(): StackView {
    const source: SourceView = this.isSourceThere
      ? {
          kind: "ready",
          revision: String(this.revision),
          aliases: [],
          spec: { program: { name: "program", generation: this.revision } },
        }
      : unavailable("notFound", "gone");
    return {
      now: this.now,
      stack: this.stack,
      spec: normaliseStack(this.stack),
      updates: this.updates,
      workspace: this.workspace,
      source,
      cycle: [],
      prerequisites: [],
      stackOutputs: [],
      configInputs: [],
      missing: [],
      outputs: { kind: "none" },
    };
  }

  /** One pass, perhaps cut short. */
  pass(cut: "nowhere" | "before" | "after"): Step["kind"] {
    const view = this.view();
    const plan = planStack(view);
    if (cut === "before") return "none";
    for (const released of plan.release) {
      this.updates = this.updates.map((update) =>
        update.name === released.name ? { ...update, held: false } : update,
      );
    }
    this.#perform(plan.step);
    if (cut === "after" || this.isGone) return plan.step.kind;
    const status = statusOf(view, plan);
    const after = { ...this.stack, status };
    checkStatus(after, this.stack);
    this.stack = after;
    return plan.step.kind;
  }

  #perform(step: Step): void {
    switch (step.kind) {
      case "addFinalizer":
        this.stack = { ...this.stack, metadata: { ...this.stack.metadata, finalizers: [stackFinalizer] } };
        break;
      case "removeFinalizer":
        this.#end();
        break;
      case "applyWorkspace":
        this.workspace = {
          kind: "present",
          object: this.#stored(step.workspace),
          state: { kind: "preparing", message: "so." },
        };
        break;
      case "deleteWorkspace":
        this.workspace = { kind: "absent" };
        break;
      case "createUpdate":
        this.#create(step);
        break;
      case "withdrawUpdate":
        this.updates = this.updates.map((update) =>
          update.name === step.name && update.startedAt === undefined
            ? { ...update, state: "failed", endedAt: this.now, message: "withdrawn" }
            : update,
        );
        break;
      case "none":
      case "note":
      case "writeOutputs":
      case "askPrerequisites":
        break;
    }
  }

  #stored(workspace: Workspace): Workspace {
    const generation = this.workspace.kind === "present" ? (this.workspace.object.metadata.generation ?? 0) + 1 : 1;
    return { ...workspace, metadata: { ...workspace.metadata, uid: "uid", generation } };
  }

  #create({ update, trigger, why }: Extract<Step, { kind: "createUpdate" }>): void {
    const name = update.metadata.name ?? "";
    const identity = JSON.stringify([
      trigger,
      this.stack.status?.lastUpdate?.lastResyncTime,
      this.stack.status?.lastUpdate?.failures,
    ]);
    const before = this.created.get(name);
    if (before !== undefined) {
      expect(this.updates.map((each) => each.name)).toContain(name);
      return;
    }
    expect([...this.created.values()]).not.toContain(identity);
    this.created.set(name, identity);
    expect(this.updates.some(({ state }) => state === "running")).toBe(false);
    const recorded = parseTrigger(update.metadata.annotations?.[triggerAnnotation]);
    expect(recorded).toEqual(trigger);
    expect(why).toBeDefined();
    this.updates = [...this.updates, anUpdate({ name, type: trigger.type, createdAt: this.now, trigger })];
  }

  #end(): void {
    const isAsked = this.stack.spec.destroyOnFinalize === true;
    if (isAsked && this.#hasDeployed) expect(this.destroys.at(-1)).toBe("succeeded");
    this.isGone = true;
  }

  happen(isKind: boolean): void {
    const chance = this.#chance;
    this.now += chance.of([10, 1000, 20_000, 90_000, 4_000_000]);
    if (this.workspace.kind === "present" && this.workspace.state.kind !== "ready" && chance.is(0.7)) {
      const isFailed = !isKind && chance.is(0.2);
      const state = isFailed
        ? ({ kind: "failed", reason: "InstallationFailed", message: "no" } as const)
        : ({ kind: "ready" } as const);
      this.workspace = { ...this.workspace, state };
    }
    this.updates = this.updates.map((update) => this.#progress(update, isKind));
    // Time to live.
    if (chance.is(0.3)) this.updates = this.updates.filter(({ state, held }) => held || state === "running");
    if (!isKind) this.#disturb(chance);
  }

  #disturb(chance: Chance): void {
    if (chance.is(0.1)) this.revision = chance.of([1, 2, 3]);
    if (chance.is(0.05)) this.workspace = { kind: "absent" };
    if (chance.is(0.1) && this.workspace.kind === "present") {
      this.workspace = { ...this.workspace, state: { kind: "failed", reason: "InitializationFailed", message: "no" } };
    }
    if (chance.is(0.1)) this.isSourceThere = !this.isSourceThere;
    if (chance.is(0.1)) this.#edit({ annotations: { "pulumi.com/reconciliation-request": chance.of(["a", "b"]) } });
    if (chance.is(0.1)) this.#edit({ generation: (this.stack.metadata.generation ?? 0) + 1 });
    if (chance.is(0.02) && this.stack.metadata.finalizers) this.#delete();
  }

  #progress(update: UpdateView, isKind: boolean): UpdateView {
    if (update.state !== "running" || !this.#chance.is(0.6)) return update;
    // It begins in a Workspace that is ready, and ends in any.
    if (update.startedAt === undefined) {
      const isReady = this.workspace.kind === "present" && this.workspace.state.kind === "ready";
      // A preview makes nothing that would have to be destroyed.
      this.#hasDeployed ||= isReady && update.type !== "preview";
      return isReady ? { ...update, startedAt: this.now } : update;
    }
    const isFailed = !isKind && this.#chance.is(0.4);
    if (update.type === "destroy") this.destroys.push(isFailed ? "failed" : "succeeded");
    const info = { projectInfo: { name: "p", runtime: "yaml" }, endedAt: this.now };
    return isFailed
      ? { ...update, ...info, state: "failed", message: "no" }
      : { ...update, ...info, state: "succeeded" };
  }

  #edit(metadata: Partial<Stack["metadata"]>): void {
    this.stack = { ...this.stack, metadata: { ...this.stack.metadata, ...metadata } };
  }

  #delete(): void {
    if (this.stack.metadata.deletionTimestamp) return;
    this.#edit({ deletionTimestamp: ago(0), generation: (this.stack.metadata.generation ?? 0) + 1 });
  }
}

describe("any history", () => {
  test("1,000 of 60 passes: no update twice, none at once, no destroy forgotten; then it comes to rest", () => {
    let [created, gone, rested] = [0, 0, 0];
    for (let seed = 1; seed <= 1000; seed++) {
      const chance = new Chance(seed);
      const world = new World(chance);
      for (let pass = 0; pass < 60 && !world.isGone; pass++) {
        world.pass(chance.of(["nowhere", "nowhere", "nowhere", "before", "after"]));
        world.happen(false);
      }
      world.isSourceThere = true;
      for (let pass = 0; pass < 60 && !world.isGone; pass++) {
        world.pass("nowhere");
        world.happen(true);
      }
      created += world.created.size;
      if (world.isGone) gone++;
      else if (world.stack.spec.continueResyncOnCommitMatch) continue;
      else {
        expect(world.stack.status?.lastUpdate?.state).toBe("succeeded");
        expect(world.stack.status?.lastUpdate?.lastSuccessfulCommit).toBe(String(world.revision));
        const before = world.stack;
        expect(world.pass("nowhere")).toBe("none");
        expect(world.stack).toEqual(before);
        rested++;
      }
    }
    console.log(`    ${created} updates, ${gone} Stacks gone, ${rested} at rest`);
    expect(Math.min(gone, rested)).toBeGreaterThan(100);
  }, 120_000);
});
