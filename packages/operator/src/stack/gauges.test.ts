import { describe, expect, test } from "bun:test";

import { stackKind, type Condition, type Stack } from "@pko/api";
import { keyOf, metricsRegistry } from "@pko/kube";

import { stackNames } from "./messages.ts";
import { exposeStackGauges, type MeteredWorld } from "./gauges.ts";

const stack = (name: string, status: Stack["status"] = {}): Stack => ({
  ...stackKind,
  metadata: { namespace: "team", name },
  spec: { stack: name },
  status,
});
const last = (state: "succeeded" | "failed"): Stack["status"] => ({ lastUpdate: { state } });
const having = (type: string, reason: string, status: Condition["status"] = "True"): Stack["status"] => ({
  conditions: [{ type, status, reason, message: "", lastTransitionTime: "" }],
});
const working = having("Reconciling", "StackProcessing");
const specOf = (plain: Stack, spec: Partial<Stack["spec"]>): Stack => ({ ...plain, spec: { ...plain.spec, ...spec } });

const storeOf = (stacks: readonly Stack[]): MeteredWorld["stacks"] => ({
  list: () => [...stacks],
  get: (key) => stacks.find((each) => keyOf(each) === key),
});

function seriesOf(metric: string, stacks: readonly Stack[], isOn = false): string[] {
  const registry = metricsRegistry();
  exposeStackGauges(registry, { stacks: storeOf(stacks), suspension: { isOn } });
  return registry.expose().match(new RegExp(`^${metric}\\{.*$`, "gm")) ?? [];
}

/** The values of `metric` by the names of the Stacks. */
function exposed(...[metric, stacks, isOn]: Parameters<typeof seriesOf>): Record<string, number> {
  const parsed = seriesOf(metric, stacks, isOn).map((line) => /namespace="team",name="(.*)"\} (.*)$/.exec(line) ?? []);
  return Object.fromEntries(parsed.map(([, name = "", value]) => [name, Number(value)]));
}

test("shows for each Stack with a finished update whether it failed", () => {
  const stacks = [stack("good", last("succeeded")), stack("bad", last("failed")), stack("new")];
  expect(exposed("stacks_failing", stacks)).toEqual({ good: 0, bad: 1 });
});

test("shows nothing about previews of pull requests, which raise no alert", () => {
  const metadata = { namespace: "team", name: "web-pr-7", annotations: { "pulumi.com/pull-request": "7" } };
  const preview = specOf({ ...stack("web-pr-7", last("failed")), metadata }, { preview: true });
  expect(exposed("stacks_failing", [preview, stack("web", last("failed"))])).toEqual({ web: 1 });
});

test("shows for each Stack whether it is reconciling", () => {
  expect(exposed("stacks_reconciling", [stack("busy", working), stack("idle")])).toEqual({ busy: 1, idle: 0 });
});

test("shows since when a Stack has been waiting for the same thing, and why", () => {
  const waiting = { for: "a slot", since: "2026-01-01T00:00:00Z" };
  const stacks = [
    stack("waiting", { ...having("Reconciling", "WaitingForSlot"), waiting }),
    stack("retrying", having("Reconciling", "RetryingAfterFailure")),
    stack("ready", { ...having("Ready", "ProcessingCompleted"), waiting }),
  ];
  const labels = 'namespace="team",name="waiting",reason="WaitingForSlot"';
  expect(seriesOf("stack_waiting_since_timestamp_seconds", stacks)).toEqual([
    `stack_waiting_since_timestamp_seconds{${labels}} ${Date.UTC(2026, 0, 1) / 1000}`,
  ]);
});

test("shows for each Stack whether it is suspended", () => {
  const stacks = [{ ...stack("held"), spec: { stack: "dev", suspend: true } }, stack("free")];
  expect(exposed("stacks_suspended", stacks)).toEqual({ held: 1, free: 0 });
  expect(exposed("stacks_suspended", stacks, true)).toEqual({ held: 1, free: 1 });
});

test("shows for each Stack that requires approvals whether it waits for one", () => {
  const awaiting = having("Reconciling", "AwaitingApproval");
  const requiring = (plain: Stack): Stack => specOf(plain, { approval: { required: "Always" } });
  const stacks = [requiring(stack("waiting", awaiting)), requiring(stack("working", working)), stack("free", working)];
  expect(exposed("stacks_awaiting_approval", stacks)).toEqual({ waiting: 1, working: 0 });
});

test("shows for each Stack with update windows whether it waits for one", () => {
  const closed = having("Reconciling", "OutsideUpdateWindow");
  const limited = (plain: Stack): Stack =>
    specOf(plain, { updateWindows: [{ schedule: "0 3 * * *", durationSeconds: 3600 }] });
  const stacks = [limited(stack("waiting", closed)), limited(stack("working", working)), stack("free", working)];
  expect(exposed("stacks_outside_update_window", stacks)).toEqual({ waiting: 1, working: 0 });
});

describe("shows each Stack that waits on purpose", () => {
  const waitsFor = (...names: readonly string[]): Stack["status"] => ({
    ...having("Reconciling", "PrerequisiteNotSatisfied"),
    waiting: { for: stackNames(names), since: "2026-01-01T00:00:00Z" },
  });
  const awaiting = stack("awaiting", having("Reconciling", "AwaitingApproval"));
  const closed = stack("closed", having("Reconciling", "OutsideUpdateWindow"));
  const suspended = specOf(stack("suspended"), { suspend: true });

  test("for an approval, for an update window or because it is suspended", () => {
    const stacks = [awaiting, closed, suspended, stack("working", working), stack("ready")];
    expect(exposed("stacks_paused", stacks)).toEqual({ awaiting: 1, closed: 1, suspended: 1 });
    expect(exposed("stacks_paused", [stack("ready")], true)).toEqual({ ready: 1 });
  });

  test("or for another Stack that is itself paused, directly or through others", () => {
    const stacks = [
      awaiting,
      stack("web", waitsFor("api")),
      stack("api", waitsFor("ready", "awaiting")),
      stack("ready"),
    ];
    expect(exposed("stacks_paused", stacks)).toEqual({ awaiting: 1, web: 1, api: 1 });
  });

  test("or for the deletion of one that is", () => {
    const waiting = { for: stackNames(["closed"]), since: "2026-01-01T00:00:00Z" };
    const base = stack("base", { ...having("Reconciling", "WaitingForDependents"), waiting });
    expect(exposed("stacks_paused", [closed, base])).toEqual({ closed: 1, base: 1 });
  });

  test("and no Stack that waits for another one, for none, or in a circle", () => {
    const stacks = [
      awaiting,
      // It has the outputs that it needs from Stack awaiting.
      specOf(stack("web", waitsFor("working")), { prerequisites: [{ name: "awaiting" }, { name: "working" }] }),
      stack("working", working),
      stack("orphan", waitsFor("missing")),
      stack("one", waitsFor("two")),
      stack("two", waitsFor("one")),
      // It waited before.
      stack("continued", { ...waitsFor("awaiting"), ...working }),
    ];
    expect(exposed("stacks_paused", stacks)).toEqual({ awaiting: 1 });
  });
});

test("shows the reason of each stalled Stack, and nothing for others", () => {
  const stacks = [
    stack("exhausted", having("Stalled", "RetriesExhausted")),
    stack("protected", having("Stalled", "Protected")),
    stack("continued", having("Stalled", "SpecInvalid", "False")),
    stack("working", working),
  ];
  expect(seriesOf("stacks_stalled", stacks)).toEqual([
    'stacks_stalled{namespace="team",name="exhausted",reason="RetriesExhausted"} 1',
    'stacks_stalled{namespace="team",name="protected",reason="Protected"} 1',
  ]);
});

test("shows the consecutive failures of each failing Stack with the class of the last one", () => {
  const stacks = [
    stack("hanging", { lastUpdate: { state: "failed", failures: 3, failure: "timedOut" } }),
    stack("of-go-operator", { lastUpdate: { state: "failed", failures: 1 } }),
    stack("good", { lastUpdate: { state: "succeeded", failures: 0 } }),
  ];
  expect(seriesOf("stack_consecutive_failures", stacks)).toEqual([
    'stack_consecutive_failures{namespace="team",name="hanging",class="timedOut"} 3',
    'stack_consecutive_failures{namespace="team",name="of-go-operator",class="other"} 1',
  ]);
});

test("shows nothing for a deleted Stack", () => {
  const registry = metricsRegistry();
  const present = [stack("a", last("failed")), stack("b", last("failed"))];
  exposeStackGauges(registry, { stacks: storeOf(present), suspension: { isOn: false } });
  expect(registry.expose()).toContain('stacks_failing{namespace="team",name="a"} 1\n');
  present.shift();
  expect(registry.expose()).not.toContain('name="a"');
  expect(registry.expose()).toContain('stacks_failing{namespace="team",name="b"} 1\n');
});

test("shows thousands of Stacks", () => {
  const many = Array.from({ length: 3000 }, (_, index) => stack(`s${index}`, last("failed")));
  expect(Object.keys(exposed("stacks_failing", many))).toHaveLength(3000);
});

test("shows for each Stack that was checked whether it has drifted, by the last check that succeeded", () => {
  const drifted = (status: Condition["status"]): Stack["status"] => having("Drifted", "x", status);
  const resources = [{ urn: "urn:pulumi:dev::demo::a:b:C::d", operation: "update" as const }];
  const stacks = [
    stack("yes", drifted("True")),
    stack("no", drifted("False")),
    stack("failed", drifted("Unknown")),
    stack("failed-later", { ...drifted("Unknown"), drift: { checkedAt: "", resources, failures: 1 } }),
  ];
  const values = { yes: 1, no: 0, failed: 0, "failed-later": 1 };
  expect(exposed("stacks_drifted", [...stacks, stack("unchecked")])).toEqual(values);
});

test("shows how many drift checks of a Stack have failed in a row", () => {
  const drift = { checkedAt: "", resources: [], failures: 3 };
  const stacks = [
    stack("failing", { ...having("Drifted", "DriftCheckFailed", "Unknown"), drift }),
    // An update with a refresh has succeeded since.
    stack("corrected", { ...having("Drifted", "NoDrift", "False"), drift }),
    stack("unchecked"),
  ];
  expect(exposed("stack_drift_check_failures", stacks)).toEqual({ failing: 3 });
});
