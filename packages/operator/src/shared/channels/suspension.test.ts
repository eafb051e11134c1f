import { expect, test } from "bun:test";

import { suspendAnnotation } from "@pko/api";
import { metricsRegistry, silentLogger } from "@pko/kube";

import { suspensionSwitch } from "./suspension.ts";

function aSwitch() {
  let changes = 0;
  const metrics = metricsRegistry();
  const suspension = suspensionSwitch({ log: silentLogger, metrics });
  const unfollow = suspension.follow(() => changes++);
  return { suspension, metrics, unfollow, changes: () => changes };
}

test.each([
  ["no annotation", {}, false],
  ["true", { [suspendAnnotation]: "true" }, true],
  ["a reason", { [suspendAnnotation]: "incident 42" }, true],
  ["an empty value", { [suspendAnnotation]: "" }, true],
  ["false", { [suspendAnnotation]: "false" }, false],
  ["another annotation", { owner: "team" }, false],
])("with %s, whether all Stacks are suspended", (_, annotations: Record<string, string>, isOn) => {
  const { suspension } = aSwitch();
  suspension.read(annotations);
  expect(suspension.isOn).toBe(isOn);
});

test("each change is reported once", () => {
  const { suspension, metrics, unfollow, changes } = aSwitch();
  suspension.read({});
  expect(changes()).toBe(0);
  suspension.read({ [suspendAnnotation]: "true" });
  suspension.read({ [suspendAnnotation]: "yes" });
  expect(changes()).toBe(1);
  expect(metrics.expose()).toContain("operator_suspended 1\n");
  suspension.read({});
  expect(changes()).toBe(2);
  expect(metrics.expose()).toContain("operator_suspended 0\n");
  unfollow();
  suspension.read({ [suspendAnnotation]: "true" });
  expect(changes()).toBe(2);
});
