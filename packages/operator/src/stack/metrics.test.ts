import { expect, test } from "bun:test";

import { stackKind, type Stack } from "@pko/api";
import { metricsRegistry } from "@pko/kube";

import { stackMetrics } from "./metrics.ts";
import { planStack } from "./rules/index.ts";
import { approvalNews } from "./history/approval.ts";
import { ago, anUpdate, viewOf } from "./testing/views.ts";
import type { UpdateFacts } from "./view.ts";

const stack = (name: string, status: Stack["status"] = {}): Stack => ({
  ...stackKind,
  metadata: { namespace: "team", name },
  spec: { stack: name },
  status,
});

test("counts what became of plans that needed an approval", () => {
  const registry = metricsRegistry();
  const metrics = stackMetrics(registry, {
    stacks: { list: () => [], get: () => undefined },
    suspension: { isOn: false },
  });
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

test("counts failed updates by type and class", () => {
  const registry = metricsRegistry();
  const metrics = stackMetrics(registry, {
    stacks: { list: () => [], get: () => undefined },
    suspension: { isOn: false },
  });
  const record = (changes: Partial<UpdateFacts>, failure?: string): void =>
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

test("the duration of an update has its trace as the exemplar, if that is recorded", () => {
  const world = { stacks: { list: () => [], get: () => undefined }, suspension: { isOn: false } };
  const exposed = (traces?: { traceId(uid: string): string | undefined }): string => {
    const registry = metricsRegistry();
    const update = anUpdate({ uid: "one", state: "succeeded", startedAt: 1000, endedAt: 3000 });
    stackMetrics(registry, world, traces).recordResult(stack("web"), { update, lastUpdate: { state: "succeeded" } });
    return registry.expose("openMetrics");
  };
  const bucket = 'stack_update_duration_seconds_bucket{type="up",result="succeeded",le="2.5"} 1';
  expect(exposed({ traceId: (uid) => `trace-of-${uid}` })).toContain(`${bucket} # {trace_id="trace-of-one"} 2 `);
  expect(exposed()).toContain(`${bucket}\n`);
});

test("counts drift checks by result", () => {
  const registry = metricsRegistry();
  const metrics = stackMetrics(registry, {
    stacks: { list: () => [], get: () => undefined },
    suspension: { isOn: false },
  });
  const drift = { checkedAt: "", resources: [] };
  metrics.recordDrift({ drift, verdict: { status: "True", reason: "DriftDetected", message: "" } });
  metrics.recordDrift({ drift, verdict: { status: "Unknown", reason: "DriftCheckFailed", message: "" } });
  expect(registry.expose()).toContain('stack_drift_checks_total{result="drifted"} 1');
  expect(registry.expose()).toContain('stack_drift_checks_total{result="failed"} 1');
});
