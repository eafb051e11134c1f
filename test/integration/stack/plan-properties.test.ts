/**
 * The plan of a Stack in a random world: specs, sources, Workspaces and Updates change at any time, and passes are interrupted
 * before or after their writes. The invariants always hold, and when the changes end, the Stack settles.
 */
import { describe, expect, test } from "bun:test";
import { driftRequestAnnotation, normalizeStack, stackFinalizer, type Stack, type Workspace } from "@pko/api";
import { checkStatus, seededRandom } from "@pko/testkit";

import { unavailable, type SourceView } from "../../../packages/operator/src/sources/source-view.ts";
import { parseTrigger, triggerAnnotation } from "../../../packages/operator/src/stack/history/trigger.ts";
import type { Step } from "../../../packages/operator/src/stack/steps.ts";
import { planStack } from "../../../packages/operator/src/stack/rules/index.ts";
import { stackStatus } from "../../../packages/operator/src/stack/status.ts";
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
import type { StackView, UpdateFacts, WorkspaceFacts } from "../../../packages/operator/src/stack/view.ts";

class Chance {
  readonly random: () => number;

  constructor(seed: number) {
    this.random = seededRandom(seed).next;
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
  { kind: "pending", what: "the first check" },
  unavailable("auth", "no"),
  unavailable("unreachable", "😀".repeat(5000)),
];

const up = { type: "up", refreshes: true };
const driftCheck = { type: "refresh", isDriftCheck: true };
const driftDetections = [
  { intervalSeconds: 3600 },
  { intervalSeconds: 60, action: "Correct" },
] as const satisfies readonly Stack["spec"]["driftDetection"][];
const drifted = { resources: [{ urn: "urn:pulumi:dev::demo::t::a", operation: "update", properties: ["x"] }] };

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

describe("any view", () => {
  test("20,000 of them: no exception, a valid status, no finalizer removed too early, no secret shown", () => {
    const chance = new Chance(1);
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
  }, 60_000);

  test("the same view leads to the same plan, and a written status is not changed again", () => {
    const chance = new Chance(2);
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
  }, 60_000);
});

/** A small model of the API server and of the other controllers. */
class World {
  stack: Stack;
  now = start;
  revision = 1;
  isSourceThere = true;
  workspace: WorkspaceFacts = { kind: "absent" };
  updates: UpdateFacts[] = [];
  readonly created = new Map<string, string>();
  readonly destroys: string[] = [];
  corrections = 0;
  isDeleted = false;
  #hasDeployed = false;
  readonly #chance: Chance;

  constructor(chance: Chance) {
    this.#chance = chance;
    const spec = {
      destroyOnFinalize: chance.is(0.7),
      continueResyncOnCommitMatch: chance.is(0.3),
      workspaceReclaimPolicy: chance.of(["Retain", "Delete"] as const),
      preview: chance.is(0.2),
      ...(chance.is(0.5) && { driftDetection: chance.of(driftDetections) }),
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
      : unavailable("notFound", "there is no Program program");
    return {
      now: this.now,
      stack: this.stack,
      spec: normalizeStack(this.stack),
      updates: this.updates,
      orphans: [],
      operatorSuspended: false,
      workspace: this.workspace,
      source,
      dependents: [],
      cycle: [],
      prerequisites: [],
      stackOutputs: [],
      configInputs: [],
      configObjects: [],
      readObjects: new Map(),
      missingInputs: [],
      outputs: { kind: "none" },
      approvals: [],
      approvalPolicy: { kind: "inForce" },
      slot: { kind: "held", forMs: 0 },
      workspaceClass: { kind: "none" },
    };
  }

  /** One pass, which may be interrupted. Returns its steps. */
  pass(interrupted: "never" | "before" | "after"): readonly Step[] {
    let view = this.view();
    let plan = planStack(view);
    if (interrupted === "before") return [];
    if (plan.steps.some(({ kind }) => kind === "removeUpdateFinalizers")) {
      for (const step of plan.steps) this.#perform(step);
      view = { ...view, updates: this.updates };
      plan = planStack(view);
    }
    const { steps } = plan;
    for (const step of steps) this.#perform(step);
    if (interrupted === "after" || this.isDeleted) return steps;
    const status = stackStatus(view, plan);
    const after = { ...this.stack, status };
    checkStatus(after, this.stack);
    this.stack = after;
    return steps;
  }

  #perform(step: Step): void {
    switch (step.kind) {
      case "addFinalizer":
        this.stack = { ...this.stack, metadata: { ...this.stack.metadata, finalizers: [stackFinalizer] } };
        break;
      case "removeFinalizer":
        this.#end();
        break;
      case "removeUpdateFinalizers": {
        const names = new Set(step.updates.map(({ name }) => name));
        this.updates = this.updates.map((update) =>
          names.has(update.name) ? { ...update, hasFinalizer: false } : update,
        );
        break;
      }
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
        this.updates = this.updates.map((update) => (update.name === step.name ? this.#withdrawn(update) : update));
        break;
      case "deleteUpdates": {
        const names = new Set(step.updates.map(({ name }) => name));
        this.updates = this.updates.filter((update) => !names.has(update.name));
        break;
      }
      case "removeOrphanFinalizers":
      case "recordResult":
      case "recordDrift":
      case "recordSkippedCommit":
      case "recordPlan":
      case "writeOutputs":
      case "checkInputs":
      case "claimSlot":
      case "requestPrerequisites":
        break;
    }
  }

  #withdrawn(update: UpdateFacts): UpdateFacts {
    if (update.state !== "unfinished") return { ...update, deleting: true };
    if (update.startedAt !== undefined && !update.isDriftCheck) return update;
    const ended = { state: "failed", failure: "withdrawn", message: "withdrawn", endedAt: this.now } as const;
    return { ...update, ...ended, deleting: true };
  }

  #stored(workspace: Workspace): Workspace {
    const generation = this.workspace.kind === "present" ? (this.workspace.object.metadata.generation ?? 0) + 1 : 1;
    return { ...workspace, metadata: { ...workspace.metadata, uid: "uid", generation } };
  }

  #create({ update, trigger, reason }: Extract<Step, { kind: "createUpdate" }>): void {
    const name = update.metadata.name ?? "";
    const { lastUpdate, drift } = this.stack.status ?? {};
    const isDriftCheck = trigger.type === "refresh";
    const checkedAt = isDriftCheck ? drift?.checkedAt : undefined;
    const identity = JSON.stringify([trigger, lastUpdate?.lastResyncTime, lastUpdate?.failures, checkedAt]);
    const before = this.created.get(name);
    const isPresent = this.updates.some((each) => each.name === name);
    // A check whose result was not needed may run again.
    expect(before === undefined || isPresent || isDriftCheck).toBe(true);
    if (isPresent) return;
    this.created.delete(name);
    expect([...this.created.values()]).not.toContain(identity);
    this.created.set(name, identity);
    expect(this.updates.some(({ state }) => state === "unfinished")).toBe(false);
    const recorded = parseTrigger(update.metadata.annotations?.[triggerAnnotation]);
    expect(recorded).toEqual(trigger);
    expect(reason).toBeDefined();
    if (isDriftCheck) expect(lastUpdate?.state).toBe("succeeded");
    const { refresh: refreshes = false } = update.spec ?? {};
    if (refreshes) this.corrections++;
    const created = anUpdate({ name, type: trigger.type, isDriftCheck, refreshes, createdAt: this.now, trigger });
    this.updates = [...this.updates, created];
  }

  #end(): void {
    const isRequired = this.stack.spec.destroyOnFinalize === true;
    if (isRequired && this.#hasDeployed) expect(this.destroys.at(-1)).toBe("succeeded");
    this.isDeleted = true;
  }

  happen(isCalm: boolean): void {
    const chance = this.#chance;
    this.now += chance.of([10, 1000, 20_000, 90_000, 4_000_000]);
    if (this.workspace.kind === "present" && this.workspace.state.kind !== "ready" && chance.is(0.7)) {
      const isFailed = !isCalm && chance.is(0.2);
      const state = isFailed
        ? ({ kind: "failed", reason: "InstallationFailed", message: "no" } as const)
        : ({ kind: "ready" } as const);
      this.workspace = { ...this.workspace, state };
    }
    this.updates = this.updates.map((update) => this.#progress(update, isCalm));
    // Time to live.
    if (chance.is(0.3)) {
      this.updates = this.updates.filter(({ state, hasFinalizer }) => hasFinalizer || state === "unfinished");
    }
    this.updates = this.updates.filter(({ deleting, hasFinalizer }) => hasFinalizer || !deleting);
    if (!isCalm) this.#disturb(chance);
  }

  #disturb(chance: Chance): void {
    if (chance.is(0.1)) this.revision = chance.of([1, 2, 3]);
    if (chance.is(0.05)) this.workspace = { kind: "absent" };
    if (chance.is(0.1) && this.workspace.kind === "present") {
      this.workspace = { ...this.workspace, state: { kind: "failed", reason: "InitializationFailed", message: "no" } };
    }
    if (chance.is(0.1)) this.isSourceThere = !this.isSourceThere;
    if (chance.is(0.1)) this.#edit({ annotations: { "pulumi.com/reconciliation-request": chance.of(["a", "b"]) } });
    if (chance.is(0.1)) this.#edit({ annotations: { [driftRequestAnnotation]: chance.of(["a", "b"]) } });
    if (chance.is(0.1)) this.#edit({ generation: (this.stack.metadata.generation ?? 0) + 1 });
    if (chance.is(0.02) && this.stack.metadata.finalizers) this.#delete();
  }

  #progress(update: UpdateFacts, isCalm: boolean): UpdateFacts {
    if (update.state !== "unfinished" || !this.#chance.is(0.6)) return update;
    // It starts in a Workspace that is ready, and ends in any.
    if (update.startedAt === undefined) {
      const isReady = this.workspace.kind === "present" && this.workspace.state.kind === "ready";
      // A preview deploys nothing.
      this.#hasDeployed ||= isReady && update.type !== "preview" && !update.isDriftCheck;
      return isReady ? { ...update, startedAt: this.now } : update;
    }
    const isFailed = !isCalm && this.#chance.is(0.4);
    if (update.type === "destroy") this.destroys.push(isFailed ? "failed" : "succeeded");
    const drift = update.isDriftCheck && { drift: this.#chance.is(0.5) ? drifted : { resources: [] } };
    const info = { projectInfo: { name: "p", runtime: "yaml" }, endedAt: this.now, ...drift };
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
  test("1,000 of 60 passes: no update runs twice, none run at the same time, no destroy is skipped; then the Stack settles", () => {
    let [created, deleted, settled, corrected] = [0, 0, 0, 0];
    for (let seed = 1; seed <= 1000; seed++) {
      const chance = new Chance(seed);
      const world = new World(chance);
      for (let pass = 0; pass < 60 && !world.isDeleted; pass++) {
        world.pass(chance.of(["never", "never", "never", "before", "after"]));
        world.happen(false);
      }
      world.isSourceThere = true;
      for (let pass = 0; pass < 60 && !world.isDeleted; pass++) {
        world.pass("never");
        world.happen(true);
      }
      created += world.created.size;
      corrected += world.corrections;
      if (world.isDeleted) deleted++;
      else if (world.stack.spec.continueResyncOnCommitMatch || world.stack.spec.driftDetection) continue;
      else {
        expect(world.stack.status?.lastUpdate?.state).toBe("succeeded");
        expect(world.stack.status?.lastUpdate?.lastSuccessfulCommit).toBe(String(world.revision));
        const before = world.stack;
        expect(world.pass("never")).toEqual([]);
        expect(world.stack).toEqual(before);
        settled++;
      }
    }
    console.log(
      `    ${created} updates, ${deleted} Stacks deleted, ${settled} settled, ${corrected} corrections of drift`,
    );
    expect(Math.min(deleted, settled)).toBeGreaterThan(100);
    expect(corrected).toBeGreaterThan(50);
  }, 120_000);
});
