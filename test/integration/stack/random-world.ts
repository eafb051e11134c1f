/** A Stack in a random world, with a small model of the API server and of the other controllers. */
import { expect } from "bun:test";
import {
  driftRequestAnnotation,
  normalizeStack,
  stackFinalizer,
  type Stack,
  type UpdatePlan,
  type Workspace,
} from "@pko/api";
import { checkStatus } from "@pko/testkit";

import { unavailable, type SourceView } from "../../../packages/operator/src/sources/source-view.ts";
import { parseTrigger, triggerAnnotation } from "../../../packages/operator/src/stack/history/trigger.ts";
import { planStack } from "../../../packages/operator/src/stack/rules/index.ts";
import { stackStatus } from "../../../packages/operator/src/stack/status.ts";
import type { Step } from "../../../packages/operator/src/stack/steps.ts";
import { ago, anUpdate, now as start, stackOf } from "../../../packages/operator/src/stack/testing/views.ts";
import type { StackView, WorkspaceFacts } from "../../../packages/operator/src/stack/view.ts";
import type { Chance } from "./chance.ts";
import { RandomApprovals, type KnownUpdate } from "./random-approvals.ts";

export const driftDetections = [
  { intervalSeconds: 3600 },
  { intervalSeconds: 60, action: "Correct" },
] as const satisfies readonly Stack["spec"]["driftDetection"][];
const drifted = { resources: [{ urn: "urn:pulumi:dev::demo::t::a", operation: "update", properties: ["x"] }] };

export const approvalPolicies = [
  { required: "Always" },
  { required: "OnDestructiveChanges", expiresAfterSeconds: 20_000 },
] as const satisfies readonly Stack["spec"]["approval"][];

type Creation = Extract<Step, { kind: "createUpdate" }>;

export class World {
  stack: Stack;
  now = start;
  revision = 1;
  isSourceThere = true;
  workspace: WorkspaceFacts = { kind: "absent" };
  updates: KnownUpdate[] = [];
  readonly created = new Map<string, string>();
  readonly destroys: string[] = [];
  corrections = 0;
  readonly approvals: RandomApprovals;
  isDeleted = false;
  #hasDeployed = false;
  readonly #chance: Chance;
  readonly #isGuarded: boolean;

  /** `isGuarded`: the Stack requires approvals most of the time, and is suspended often. */
  constructor(chance: Chance, { isGuarded = false } = {}) {
    this.#chance = chance;
    this.#isGuarded = isGuarded;
    this.approvals = new RandomApprovals(chance);
    const spec = {
      destroyOnFinalize: chance.is(0.7),
      continueResyncOnCommitMatch: chance.is(0.3),
      workspaceReclaimPolicy: chance.of(["Retain", "Delete"] as const),
      preview: chance.is(0.2),
      ...(!isGuarded && chance.is(0.5) && { driftDetection: chance.of(driftDetections) }),
      ...(isGuarded && { approval: chance.of(approvalPolicies) }),
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
      unreported: [],
      dependents: [],
      cycle: [],
      prerequisites: [],
      stackOutputs: [],
      configInputs: [],
      configObjects: [],
      readObjects: new Map(),
      missingInputs: [],
      outputs: { kind: "none" },
      approvals: this.approvals.about(this.stack.status?.approval?.updateName),
      approvalPolicy: { kind: "inForce" },
      slot: { kind: "held", forMs: 0, isWanted: false },
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
        this.#remove();
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

  #withdrawn(update: KnownUpdate): KnownUpdate {
    if (update.state !== "unfinished") return { ...update, deleting: true };
    if (update.startedAt !== undefined && !update.isDriftCheck) return update;
    if (update.startedAt === undefined) this.approvals.withdraw({ ...this.#context, update });
    const ended = { state: "failed", failure: "withdrawn", message: "withdrawn", endedAt: this.now } as const;
    return { ...update, ...ended, deleting: true };
  }

  #stored(workspace: Workspace): Workspace {
    const generation = this.workspace.kind === "present" ? (this.workspace.object.metadata.generation ?? 0) + 1 : 1;
    return { ...workspace, metadata: { ...workspace.metadata, uid: "uid", generation } };
  }

  #create(step: Creation): void {
    const { update, trigger, reason } = step;
    const name = update.metadata.name ?? "";
    const isDriftCheck = trigger.type === "refresh";
    const isPresent = this.updates.some((each) => each.name === name);
    // A check whose result was not needed may run again.
    expect(!this.created.has(name) || isPresent || isDriftCheck).toBe(true);
    if (isPresent) return;
    const identity = this.#identity(step);
    this.created.delete(name);
    expect([...this.created.values()]).not.toContain(identity);
    this.created.set(name, identity);
    expect(this.updates.some(({ state }) => state === "unfinished")).toBe(false);
    expect(parseTrigger(update.metadata.annotations?.[triggerAnnotation])).toEqual(trigger);
    expect(reason).toBeDefined();
    if (isDriftCheck) expect(this.stack.status?.lastUpdate?.state).toBe("succeeded");
    this.updates = [...this.updates, this.#created(step)];
  }

  /** What the name of an Update has to depend on. */
  #identity({ update: { spec }, trigger }: Creation): string {
    const { lastUpdate, drift, approval } = this.stack.status ?? {};
    const checkedAt = trigger.type === "refresh" ? drift?.checkedAt : undefined;
    const stage = spec?.savePlan ? `plan after ${approval?.updateName}` : spec?.applyPlan?.updateName;
    return JSON.stringify([trigger, lastUpdate?.lastResyncTime, lastUpdate?.failures, checkedAt, stage]);
  }

  #created({ update: { metadata, spec = {} }, trigger }: Creation): KnownUpdate {
    const { name = "" } = metadata;
    const { type = trigger.type, refresh: refreshes = false, savePlan: isPlan = false, applyPlan } = spec;
    if (refreshes) this.corrections++;
    const isDriftCheck = trigger.type === "refresh";
    const facts = { name, uid: `uid-of-${name}`, type, isDriftCheck, refreshes, isPlan, trigger };
    const applied = applyPlan && { appliesPlan: applyPlan.updateName };
    return { ...anUpdate({ ...facts, createdAt: this.now, ...applied }), spec };
  }

  #remove(): void {
    const isRequired = this.stack.spec.destroyOnFinalize === true;
    if (isRequired && this.#hasDeployed) expect(this.destroys.at(-1)).toBe("succeeded");
    this.isDeleted = true;
  }

  /** Nothing disturbs the Stack from now on. */
  calm(): void {
    this.isSourceThere = true;
    if (this.stack.spec.suspend === true) this.#editSpec({ suspend: false });
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
      const { updateName } = this.stack.status?.approval ?? {};
      // A plan is kept until it expires, unless a user deletes it.
      const isKept = ({ name }: KnownUpdate): boolean => name === updateName && (isCalm || chance.is(0.8));
      this.updates = this.updates.filter(
        (update) => update.hasFinalizer || update.state === "unfinished" || isKept(update),
      );
    }
    this.updates = this.updates.filter(({ deleting, hasFinalizer }) => hasFinalizer || !deleting);
    this.#decide(isCalm);
    // A plan needs some time to be decided about.
    if (!isCalm && (!this.#isGuarded || chance.is(0.3))) this.#disturb(chance);
  }

  #decide(isCalm: boolean): void {
    const { approval } = this.stack.status ?? {};
    const isDecided = this.approvals.about(approval?.updateName).length > 0;
    if (approval?.state === "Pending") {
      if (!isDecided || this.#chance.is(0.3)) this.approvals.decide(approval, { now: this.now, isCalm });
      return;
    }
    const isStuck = isCalm && approval?.state === "Rejected" && this.#chance.is(0.3);
    if (isStuck) this.#edit({ annotations: { "pulumi.com/reconciliation-request": `after ${approval.updateName}` } });
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
    if (this.#isGuarded) this.#disturbApproval(chance);
    if (chance.is(0.02) && this.stack.metadata.finalizers) this.#delete();
  }

  #disturbApproval(chance: Chance): void {
    if (chance.is(0.05)) this.#editSpec({ approval: chance.of([{ required: "Never" } as const, ...approvalPolicies]) });
    const isSuspended = this.stack.spec.suspend === true;
    if (chance.is(isSuspended ? 0.8 : 0.1)) this.#editSpec({ suspend: !isSuspended });
  }

  get #context() {
    return { stack: this.stack, updates: this.updates, now: this.now };
  }

  /** It starts in a Workspace that is ready, and ends in any. */
  #progress(update: KnownUpdate, isCalm: boolean): KnownUpdate {
    if (update.state !== "unfinished" || !this.#chance.is(0.6)) return update;
    if (update.startedAt !== undefined) return this.#end(update, isCalm);
    const isReady = this.workspace.kind === "present" && this.workspace.state.kind === "ready";
    if (!isReady) return update;
    const attempt = this.approvals.start({ ...this.#context, update });
    switch (attempt.kind) {
      case "started":
        // A preview deploys nothing.
        this.#hasDeployed ||= update.type !== "preview" && !update.isDriftCheck && !update.isPlan;
        return { ...update, startedAt: this.now };
      case "interrupted":
        if (!isCalm && this.#chance.is(0.5)) this.#editSpec({ suspend: true });
        return update;
      case "refused":
        return { ...update, state: "failed", message: attempt.message, endedAt: this.now };
    }
  }

  #end(update: KnownUpdate, isCalm: boolean): KnownUpdate {
    const isFailed = !isCalm && this.#chance.is(this.#isGuarded ? 0.1 : 0.4);
    if (update.type === "destroy" && !update.isPlan) this.destroys.push(isFailed ? "failed" : "succeeded");
    const drift = update.isDriftCheck && { drift: this.#chance.is(0.5) ? drifted : { resources: [] } };
    const plan = update.isPlan && { plan: this.#plan(update) };
    const info = { projectInfo: { name: "p", runtime: "yaml" }, endedAt: this.now, ...drift, ...(!isFailed && plan) };
    return isFailed
      ? { ...update, ...info, state: "failed", message: "no" }
      : { ...update, ...info, state: "succeeded" };
  }

  #plan({ name }: KnownUpdate): UpdatePlan {
    const changes = this.#chance.is(0.9);
    const destructive = changes && this.#chance.is(0.5);
    return { digest: `sha256:${name}`, changes, destructive, secretNames: [], unknownInputs: 0, summary: "- bucket" };
  }

  #editSpec(spec: Partial<Stack["spec"]>): void {
    this.stack = { ...this.stack, spec: { ...this.stack.spec, ...spec } };
    this.#edit({ generation: (this.stack.metadata.generation ?? 0) + 1 });
  }

  #edit(metadata: Partial<Stack["metadata"]>): void {
    this.stack = { ...this.stack, metadata: { ...this.stack.metadata, ...metadata } };
  }

  #delete(): void {
    if (this.stack.metadata.deletionTimestamp) return;
    this.#edit({ deletionTimestamp: ago(0), generation: (this.stack.metadata.generation ?? 0) + 1 });
  }
}
