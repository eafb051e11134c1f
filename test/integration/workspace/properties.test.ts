/** For random Workspaces: the plan never throws, the status is valid, and the guarantees hold. */
import { expect, test } from "bun:test";

import { normalizeWorkspace, type Workspace } from "@pko/api";
import type { Preparation } from "@pko/operator";
import type { PrepareFailure } from "@pko/rpc";
import { seededRandom, statusFaults, testSeed } from "@pko/testkit";

import { buildPodTemplate } from "../../../packages/operator/src/workspace/pod/build-pod.ts";
import { explainPod } from "../../../packages/operator/src/workspace/pod/explain-pod.ts";
import { podFacts } from "../../../packages/operator/src/workspace/pod/pod-facts.ts";
import { workspaceEvents } from "../../../packages/operator/src/workspace/events.ts";
import { planWorkspace } from "../../../packages/operator/src/workspace/rules/index.ts";
import { workspaceStatus } from "../../../packages/operator/src/workspace/status.ts";
import * as views from "../../../packages/operator/src/workspace/testing/views.ts";
import {
  agentAddress,
  hasWork,
  runningUpdate,
  type WorkspaceView,
} from "../../../packages/operator/src/workspace/view.ts";
import { prepared } from "./scene.ts";

class Dice {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seededRandom(seed).next;
  }

  pick<T>(...values: readonly [T, ...T[]]): T {
    return values[Math.floor(this.#random() * values.length)] ?? values[0];
  }

  maybe<T>(value: T): T[] {
    return this.#random() < 0.5 ? [value] : [];
  }

  view(): WorkspaceView {
    const seconds = this.pick(0, 1, 5, 30, 700, 9999);
    const local = { local: { dir: "/a" }, stacks: [{ name: "dev" }] };
    const spec = this.pick<object>(
      local,
      local,
      local,
      { git: {} },
      { ...local, podTemplate: { spec: { hostPID: true } } },
    );
    return views.view(
      views.specified(spec),
      this.pick(views.ready(seconds), views.notReady(seconds), views.status({}), views.status({ address: "x" })),
      ...this.maybe(this.pick(views.changed, views.withoutAddress)),
      ...this.maybe(
        this.pick(views.set(), views.set({ replicas: 0 }), views.set({ builtHash: "old" }), views.unobservedSet),
      ),
      ...this.maybe(
        this.pick(views.pod(), views.podStarting, views.podDown(), views.podDown("stuck", { isUnschedulable: true })),
      ),
      ...this.maybe(this.pick(views.pod({ isDeleting: true }), views.pod({ revision: "other" }), views.pod())),
      ...this.maybe(
        this.pick(
          views.update("waiting"),
          views.update("onPod"),
          views.update("ended", { endedAt: views.ago(seconds) }),
        ),
      ),
      ...this.maybe(views.update("ended", { endedAt: views.ago(20) })),
      ...this.maybe(this.pick(views.input({ missing: ["m"] }), views.input({ ephemeralState: "/s" }), views.input({}))),
      ...this.maybe(views.input({ requested: { kind: "incomplete", message: "m", soon: this.pick(true, false) } })),
      ...this.maybe(views.shortage(this.pick("web", "other"))),
      ...this.maybe(views.given({ idleTimeoutMs: this.pick(0, 1000, 600_000) })),
      ...this.maybe(views.retryAt(views.ago(this.pick(-5, 5)))),
      ...(this.#random() < 0.05 ? [views.deleted] : []),
    );
  }

  /** What a step that prepares finds out. */
  facts(): Partial<WorkspaceView> {
    const phase = this.pick<PrepareFailure["phase"]>("source", "install", "stack", "config");
    const reason = this.pick<PrepareFailure["reason"]>(
      "sourceUnavailable",
      "installFailed",
      "versionTooLow",
      "superseded",
    );
    const failure = { phase, reason, message: "it failed", lines: [] };
    const preparation = this.pick<Preparation>(
      { state: "running", phase },
      { state: "done", result: prepared },
      { state: "done", result: { ok: false, failure } },
      { state: "busy", message: "busy" },
      { state: "unreachable", message: "gone", sinceMs: views.ago(this.pick(1, 100)) },
    );
    return this.pick<Partial<WorkspaceView>>({ preparation }, { preparation }, { rejection: "no" }, {});
  }
}

const amount = 10_000;
const firstSeed = testSeed("views of Workspaces");

test("random views", () => {
  const kinds = new Map<string, number>();
  for (let seed = firstSeed; seed < firstSeed + amount; seed++) {
    const dice = new Dice(seed);
    const observed = dice.view();
    const first = planWorkspace(observed);
    const prepares = first.steps.some(({ kind }) => kind === "prepare");
    const facts = prepares ? dice.facts() : {};
    const view = { ...observed, ...facts };
    const { outcome, requeueAt } = planWorkspace(view);
    workspaceEvents(view, outcome);
    const status = workspaceStatus(view, outcome);
    kinds.set(outcome.kind, (kinds.get(outcome.kind) ?? 0) + 1);
    const faults = [...statusFaultsOf(view, status), ...brokenGuarantees(view, { status, steps: first.steps })];
    if (requeueAt !== undefined && !(requeueAt > view.now)) faults.push(`requeued after ${requeueAt - view.now} ms`);
    expect({ TEST_SEED: seed, faults }).toEqual({ TEST_SEED: seed, faults: [] });
  }
  expect(kinds.size).toBe(11);
}, 180_000);

function statusFaultsOf({ workspace }: WorkspaceView, status: NonNullable<Workspace["status"]>): string[] {
  const conditions = status.conditions ?? [];
  const after = { ...workspace, status: { ...status, conditions } };
  const before = { ...workspace, status: { ...workspace.status, conditions: workspace.status?.conditions ?? [] } };
  return statusFaults(after, before);
}

interface Result {
  readonly status: NonNullable<Workspace["status"]>;
  readonly steps: ReturnType<typeof planWorkspace>["steps"];
}

/** What other controllers rely on: each guarantee with whether it is broken. */
function brokenGuarantees(view: WorkspaceView, { status, steps }: Result): string[] {
  const { conditions = [] } = status;
  const isReady = conditions.some(({ type, status: value }) => type === "Ready" && value === "True");
  const isStalled = conditions.some(({ type }) => type === "Stalled");
  const planned = new Set<string>(steps.map(({ kind }) => kind));
  const writes = ["applyObjects", "scaleToZero", "deletePod"].some((kind) => planned.has(kind));
  const { generation, deletionTimestamp } = view.workspace.metadata;
  const isRunning = runningUpdate(view) !== undefined && view.pod?.isUp === true && !view.pod.isDeleting;
  const guarantees: Readonly<Record<string, boolean>> = {
    "ready and stalled": isReady && isStalled,
    "ready for another generation": isReady && status.observedGeneration !== generation,
    "an address although no pod is up": isReady && !isAddressOfPod(view, status),
    "a write while an Update runs": isRunning && writes,
    "scaled to zero with work to do": hasWork(view.updates) && planned.has("scaleToZero"),
    "scaled to zero although state is lost": view.inputs?.ephemeralState !== undefined && planned.has("scaleToZero"),
    "a write for a deleted Workspace": deletionTimestamp !== undefined && writes,
  };
  return Object.keys(guarantees).filter((name) => guarantees[name]);
}

/** An agent that has just finished a preparation is up, whatever the kubelet reports. */
function isAddressOfPod({ pod, preparation }: WorkspaceView, { address }: Result["status"]): boolean {
  const isUp = pod?.isUp === true || preparation?.state === "done";
  return address === undefined || (pod !== undefined && isUp && agentAddress(pod.agent) === address);
}

const strictClass = {
  name: "teams",
  uid: "c1",
  spec: {
    namespaceSelector: {},
    limits: { resources: { cpu: "1", memory: "1Gi" } },
    caches: { size: "1Gi" },
    policyPacks: [{ name: "cost", image: "packs", path: "/packs" }],
  },
};

test("malformed specs, templates and pods do not throw", () => {
  const junk: readonly unknown[] = [null, 0, "", "x", [], {}, [null], { a: null }, { $patch: 1 }, { name: {} }, [[1]]];
  let count = 0;
  for (const value of junk) {
    for (const field of ["containers", "initContainers", "volumes", "securityContext", "resources", "metadata"]) {
      const spec = { podTemplate: field === "metadata" ? { metadata: value } : { spec: { [field]: value } } };
      const normal = normalizeWorkspace({ metadata: { name: "web" }, spec });
      if (!normal.ok) continue;
      count++;
      for (const context of [{}, { applied: strictClass }]) {
        expect(() => buildPodTemplate(normal.value, { settings: views.settings, ...context })).not.toThrow();
      }
      expect(() => views.view(views.specified({ serviceTemplate: { metadata: value, spec: value } }))).not.toThrow();
    }
    for (const resources of [
      value,
      { $patch: "replace", limits: value },
      { $patch: "replace", requests: { cpu: value } },
    ]) {
      const containers = [{ $patch: "replace" }, { name: "pulumi", resources }];
      const normal = normalizeWorkspace({ metadata: { name: "web" }, spec: { podTemplate: { spec: { containers } } } });
      if (!normal.ok) continue;
      expect(() => buildPodTemplate(normal.value, { settings: views.settings, applied: strictClass })).not.toThrow();
    }
    const status = { phase: "Pending", containerStatuses: [{ name: "pulumi", state: value }] };
    const pod = { apiVersion: "v1", kind: "Pod", metadata: {}, status } as never;
    expect(() => explainPod(pod)).not.toThrow();
    expect(() => podFacts(pod, { namespace: "", name: "" }, { hasResponded: () => true })).not.toThrow();
  }
  expect(count).toBeGreaterThan(20);
});
