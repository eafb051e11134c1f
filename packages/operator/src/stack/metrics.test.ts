import { expect, test } from "bun:test";

import { stackKind, type Stack } from "@pko/api";
import { metricsRegistry } from "@pko/kube";

import { stackMetrics } from "./metrics.ts";

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

/** What is told of `metric`: the values by the names of the Stacks. */
function exposed(metric: string, stacks: readonly Stack[]): Record<string, number> {
  const registry = metricsRegistry();
  stackMetrics(registry, { list: () => [...stacks] });
  const series = registry.expose().matchAll(new RegExp(`^${metric}\\{namespace="team",name="(.*)"\\} (.*)$`, "gm"));
  return Object.fromEntries([...series].map(([, name = "", value]) => [name, Number(value)]));
}

test("each Stack that has been updated fails or does not", () => {
  const stacks = [stack("good", last("succeeded")), stack("bad", last("failed")), stack("new")];
  expect(exposed("stacks_failing", stacks)).toEqual({ good: 0, bad: 1 });
});

test("each Stack is worked on or is not", () => {
  expect(exposed("stacks_reconciling", [stack("busy", working), stack("idle")])).toEqual({ busy: 1, idle: 0 });
});

test("of a Stack that is gone nothing is told any more", () => {
  const registry = metricsRegistry();
  const present = [stack("a", last("failed")), stack("b", last("failed"))];
  stackMetrics(registry, { list: () => present });
  expect(registry.expose()).toContain('stacks_failing{namespace="team",name="a"} 1\n');
  present.shift();
  expect(registry.expose()).not.toContain('name="a"');
  expect(registry.expose()).toContain('stacks_failing{namespace="team",name="b"} 1\n');
});

test("of thousands of Stacks none is left out", () => {
  const many = Array.from({ length: 3000 }, (_, index) => stack(`s${index}`, last("failed")));
  expect(Object.keys(exposed("stacks_failing", many))).toHaveLength(3000);
});
