import { expect, test } from "bun:test";

import { deploymentIn, parseObjects } from "./installation.ts";

const deployment = (name: string, namespace?: string): string =>
  JSON.stringify({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name, namespace } });

test("the operator of a manifest is its Deployment", () => {
  expect(deploymentIn(parseObjects(`---\n${deployment("controller-manager", "system")}\n---\n`))).toBe(
    "system/controller-manager",
  );
});

test("of several Deployments, it is the one with the name of the product", () => {
  const objects = parseObjects([deployment("other", "a"), deployment("pulumi-kubernetes-operator")].join("\n---\n"));
  expect(deploymentIn(objects)).toBe("pulumi-kubernetes-operator/pulumi-kubernetes-operator");
});

test("a manifest without a Deployment is rejected", () => {
  expect(() => deploymentIn(parseObjects("kind: Namespace"))).toThrow("must have one Deployment");
});
