/** A cluster of the user is used only if it certainly has no operator, in any namespace. */
import { expect, test } from "bun:test";

import type { OperatorDeployment } from "@pko/cluster";

import { operatorProblem } from "./shared-cluster.ts";

const deployment = (namespace: string, ...variables: readonly string[]): OperatorDeployment => {
  const containers = [{ image: "any", env: variables.map((name) => ({ name })) }];
  return { metadata: { name: "web", namespace }, spec: { template: { spec: { containers } } } };
};

test("a cluster without an operator can be used", async () => {
  expect(await operatorProblem(async () => [deployment("default")])).toBeUndefined();
});

test.each([
  ["this operator", "OPERATOR_AGENT_IMAGE"],
  ["the Go operator", "PULUMI_INFER_NAMESPACE"],
])("%s in another namespace is a problem", async (name, variable) => {
  expect(await operatorProblem(async () => [deployment("default"), deployment("pulumi-system", variable)])).toBe(
    `${name} is installed on this cluster (Deployment web in namespace pulumi-system), and would reconcile the Stacks of tests: uninstall it`,
  );
});

test("a cluster whose Deployments cannot be read is a problem", async () => {
  const fail = async (): Promise<never> => {
    throw new Error("kubectl exited with code 1: connection refused");
  };
  expect(await operatorProblem(fail)).toBe(
    "whether the cluster of CLUSTER_KUBECONFIG has an operator is unknown: kubectl exited with code 1: connection refused",
  );
});
