import { expect, test } from "bun:test";

import { stackKind, type Stack } from "@pko/api";
import { metricsRegistry } from "@pko/kube";

import { stackMetrics } from "./metrics.ts";
import { planStack } from "./rules/index.ts";
import { approvalNews } from "./history/approval.ts";
import { ago, anUpdate, viewOf } from "./testing/views.ts";
import type { UpdateView } from "./view.ts";

const stack = (name: string, status: Stack["status"] = {}): Stack => ({
  ...stackKind,
  metadata: { namespace: "team", name },
  spec: { stack: name },
  status,
});
const last = (state: "succeeded" | "failed"): Stack["status"] => ({ lastUpdate: { state } });
const working: Stack["status"] = {
  conditions: [{ type: "Reconciling", status: "True", reason: "StackProcessing", message: "", lastTransitionTime: "" }],
};

/** The values of `metric` by the names of the Stacks. */
function exposed(metric: string, stacks: readonly Stack[], isOn = false): Record<string, number> {
  const registry = metricsRegistry();
  stackMetrics(registry, { stacks: { list: () => [...stacks] }, suspension: { isOn } });
  const series = registry.expose().matchAll(new RegExp(`^${metric}\\{namespace="team",name="(.*)"\\} (.*)$`, "gm"));
  return Object.fromEntries([...series].map(([, name = "", value]) => [name, Number(value)]));
}

test("shows for each Stack with a finished update whether it failed", () => {
  const stacks = [stack("good", last("succeeded")), stack("bad", last("failed")), stack("new")];
  expect(exposed("stacks_failing", stacks)).toEqual({ good: 0, bad: 1 });
});

test("shows for each Stack whether it is reconciling", () => {
  expect(exposed("stacks_reconciling", [stack("busy", working), stack("idle")])).toEqual({ busy: 1, idle: 0 });
});

test("shows for each Stack whether it is suspended", () => {
  const stacks = [{ ...stack("held"), spec: { stack: "dev", suspend: true } }, stack("free")];
  expect(exposed("stacks_suspended", stacks)).toEqual({ held: 1, free: 0 });
  expect(exposed("stacks_suspended", stacks, true)).toEqual({ held: 1, free: 1 });
});

test("shows for each Stack that requires approvals whether it waits for one", () => {
  const awaiting: Stack["status"] = {
    conditions: [
      { type: "Reconciling", status: "True", reason: "AwaitingApproval", message: "", lastTransitionTime: "" },
    ],
  };
  const requiring = (name: string, status: Stack["status"]): Stack => {
    const plain = stack(name, status);
    return { ...plain, spec: { ...plain.spec, approval: { required: "Always" } } };
  };
  const stacks = [requiring("waiting", awaiting), requiring("working", working), stack("free", working)];
  expect(exposed("stacks_awaiting_approval", stacks)).toEqual({ waiting: 1, working: 0 });
});

test("counts what became of plans that needed an approval", () => {
  const registry = metricsRegistry();
  const metrics = stackMetrics(registry, { stacks: { list: () => [] }, suspension: { isOn: false } });
  const approval = {
    state: "Pending",
    updateName: "web-plan",
    updateUid: "uid",
    digest: "sha256:a",
    trigger: "{}",
    summary: "",
    expiresAt: ago(60),
  } as const;
  const view = viewOf({ spec: { approval: { required: "Always" } }, status: { approval } });
  metrics.recordApprovals(approvalNews(view, planStack(view).steps));
  metrics.recordApprovals([{ kind: "awaiting", request: approval }]);
  const series = registry.expose().match(/^stack_approval_requests_total.*$/gm);
  expect(series).toEqual(['stack_approval_requests_total{result="superseded"} 1']);
});

test("shows nothing for a deleted Stack", () => {
  const registry = metricsRegistry();
  const present = [stack("a", last("failed")), stack("b", last("failed"))];
  stackMetrics(registry, { stacks: { list: () => present }, suspension: { isOn: false } });
  expect(registry.expose()).toContain('stacks_failing{namespace="team",name="a"} 1\n');
  present.shift();
  expect(registry.expose()).not.toContain('name="a"');
  expect(registry.expose()).toContain('stacks_failing{namespace="team",name="b"} 1\n');
});

test("shows thousands of Stacks", () => {
  const many = Array.from({ length: 3000 }, (_, index) => stack(`s${index}`, last("failed")));
  expect(Object.keys(exposed("stacks_failing", many))).toHaveLength(3000);
});

test("counts failed updates by type and class", () => {
  const registry = metricsRegistry();
  const metrics = stackMetrics(registry, { stacks: { list: () => [] }, suspension: { isOn: false } });
  const record = (changes: Partial<UpdateView>, failure?: string): void =>
    metrics.recordResult(stack("web"), {
      update: anUpdate({ state: "failed", ...changes }),
      lastUpdate: { state: changes.state ?? "failed", ...(failure !== undefined && { failure }) },
    });
  record({}, "timedOut");
  record({ type: "destroy" }, "timedOut");
  record({});
  record({}, "withdrawn");
  record({ state: "succeeded" });
  const series = registry.expose().match(/^stack_update_failures_total.*$/gm);
  expect(series?.toSorted()).toEqual([
    'stack_update_failures_total{type="destroy",class="timedOut"} 1',
    'stack_update_failures_total{type="up",class="other"} 1',
    'stack_update_failures_total{type="up",class="timedOut"} 1',
  ]);
});

test("shows for each Stack that was checked whether it has drifted", () => {
  const drifted = (status: "True" | "False" | "Unknown"): Stack["status"] => ({
    conditions: [{ type: "Drifted", status, reason: "x", message: "", lastTransitionTime: "" }],
  });
  const stacks = [stack("yes", drifted("True")), stack("no", drifted("False")), stack("failed", drifted("Unknown"))];
  expect(exposed("stacks_drifted", [...stacks, stack("unchecked")])).toEqual({ yes: 1, no: 0, failed: 0 });
});

test("counts checks for drift by result", () => {
  const registry = metricsRegistry();
  const metrics = stackMetrics(registry, { stacks: { list: () => [] }, suspension: { isOn: false } });
  const drift = { checkedAt: "", resources: [] };
  metrics.recordDrift({ drift, verdict: { status: "True", reason: "DriftDetected", message: "" } });
  metrics.recordDrift({ drift, verdict: { status: "Unknown", reason: "DriftCheckFailed", message: "" } });
  expect(registry.expose()).toContain('stack_drift_checks_total{result="drifted"} 1');
  expect(registry.expose()).toContain('stack_drift_checks_total{result="failed"} 1');
});
