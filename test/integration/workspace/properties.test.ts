/** Whatever a Workspace is like: the plan never throws, its status is sound, and its promises hold. */
import { expect, test } from "bun:test";

import { normaliseWorkspace, type Workspace } from "@pko/api";
import type { Preparation } from "@pko/operator";
import type { PrepareFailure } from "@pko/rpc";
import { statusFaults } from "@pko/testkit";

import { buildPodTemplate } from "../../../packages/operator/src/workspace/build-pod.ts";
import { explainPod } from "../../../packages/operator/src/workspace/explain-pod.ts";
import { podFacts } from "../../../packages/operator/src/workspace/pod-facts.ts";
import { conclude, planWorkspace, type Performed } from "../../../packages/operator/src/workspace/plan.ts";
import { eventOf, statusOf } from "../../../packages/operator/src/workspace/status.ts";
import * as views from "../../../packages/operator/src/workspace/testing/views.ts";
import { addressOf, hasWork, runOf, type WorkspaceView } from "../../../packages/operator/src/workspace/view.ts";
import { prepared } from "./harness.ts";
import { randomFrom } from "./raw.ts";

class Dice {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = randomFrom(seed);
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
        this.pick(views.set(), views.set({ replicas: 0 }), views.set({ builtHash: "old" }), views.unseenSet),
      ),
      ...this.maybe(
        this.pick(views.pod(), views.podComing, views.podDown(), views.podDown("stuck", { isUnschedulable: true })),
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
      ...this.maybe(this.pick(views.input({ missing: ["m"] }), views.input({ losable: "/s" }), views.input({}))),
      ...this.maybe(views.input({ requested: { ok: false, message: "m", soon: this.pick(true, false) } })),
      ...this.maybe(views.given({ yielding: [this.pick("team/web", "team/other")] })),
      ...this.maybe(views.given({ idleTimeoutMs: this.pick(0, 1000, 600_000) })),
      ...this.maybe(views.given({ retryAt: views.ago(this.pick(-5, 5)) })),
      ...(this.#random() < 0.05 ? [views.deleted] : []),
    );
  }

  performed(): Performed {
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
    return this.pick<Performed>({ preparation }, { preparation }, { refusal: "no" }, {});
  }
}

const amount = 10_000;

test("over random views", () => {
  const kinds = new Map<string, number>();
  for (let seed = 1; seed <= amount; seed++) {
    const dice = new Dice(seed);
    const view = dice.view();
    const plan = planWorkspace(view);
    const prepares = plan.steps.some(({ kind }) => kind === "prepare");
    const performed = prepares ? dice.performed() : {};
    const { outcome, lookAt } = conclude(view, plan, performed);
    eventOf(view, outcome);
    const status = statusOf(view, outcome);
    kinds.set(outcome.kind, (kinds.get(outcome.kind) ?? 0) + 1);
    const faults = [...statusFaultsOf(view, status), ...brokenPromises(view, { status, plan, performed })];
    if (lookAt !== undefined && !(lookAt > view.now)) faults.push(`it looks again after ${lookAt - view.now} ms`);
    expect([seed, faults]).toEqual([seed, []]);
  }
  expect(kinds.size).toBe(11);
}, 60_000);

function statusFaultsOf({ workspace }: WorkspaceView, status: NonNullable<Workspace["status"]>): string[] {
  const conditions = status.conditions ?? [];
  const after = { ...workspace, status: { ...status, conditions } };
  const before = { ...workspace, status: { ...workspace.status, conditions: workspace.status?.conditions ?? [] } };
  return statusFaults(after, before);
}

interface Result {
  readonly status: NonNullable<Workspace["status"]>;
  readonly plan: ReturnType<typeof planWorkspace>;
  readonly performed: Performed;
}

/** What others rely on: each a sentence, and whether it is broken. */
function brokenPromises(view: WorkspaceView, { status, plan, performed }: Result): string[] {
  const { conditions = [] } = status;
  const isReady = conditions.some(({ type, status: value }) => type === "Ready" && value === "True");
  const isStalled = conditions.some(({ type }) => type === "Stalled");
  const does = new Set<string>(plan.steps.map(({ kind }) => kind));
  const writes = ["applyObjects", "sleep", "deletePod"].some((kind) => does.has(kind));
  const { generation, deletionTimestamp } = view.workspace.metadata;
  const isRunning = runOf(view) !== undefined && view.pod?.isUp === true && !view.pod.isDeleting;
  const promises: Readonly<Record<string, boolean>> = {
    "ready and stalled": isReady && isStalled,
    "ready for another generation": isReady && status.observedGeneration !== generation,
    "an address where no pod is up": isReady && !isPlaceOf(view, status, performed),
    "a write under a run": isRunning && writes,
    "asleep with work to do": hasWork(view.updates) && does.has("sleep"),
    "asleep, and the state is lost": view.inputs?.losable !== undefined && does.has("sleep"),
    "writes for what is being deleted": deletionTimestamp !== undefined && writes,
  };
  return Object.keys(promises).filter((name) => promises[name]);
}

/** Whoever has prepared it just now is there, whatever the kubelet tells. */
function isPlaceOf({ pod }: WorkspaceView, { address }: Result["status"], { preparation }: Performed): boolean {
  const isThere = pod?.isUp === true || preparation?.state === "done";
  return address === undefined || (pod !== undefined && isThere && addressOf(pod.agent) === address);
}

test("junk for a spec, a template and a pod is no reason to throw", () => {
  const junk: readonly unknown[] = [null, 0, "", "x", [], {}, [null], { a: null }, { $patch: 1 }, { name: {} }, [[1]]];
  let count = 0;
  for (const value of junk) {
    for (const field of ["containers", "initContainers", "volumes", "securityContext", "metadata"]) {
      const spec = { podTemplate: field === "metadata" ? { metadata: value } : { spec: { [field]: value } } };
      const normal = normaliseWorkspace({ metadata: { name: "web" }, spec });
      if (!normal.ok) continue;
      count++;
      expect(() => buildPodTemplate(normal.value, { settings: views.settings })).not.toThrow();
      expect(() => views.view(views.specified({ serviceTemplate: { metadata: value, spec: value } }))).not.toThrow();
    }
    const status = { phase: "Pending", containerStatuses: [{ name: "pulumi", state: value }] };
    const pod = { apiVersion: "v1", kind: "Pod", metadata: {}, status } as never;
    expect(() => explainPod(pod)).not.toThrow();
    expect(() => podFacts(pod, { namespace: "", name: "" }, { hasAnswered: () => true })).not.toThrow();
  }
  expect(count).toBeGreaterThan(20);
});
