/** A cluster of the user is used only if tests can access it, and if it certainly has no operator, in any namespace. */
import { describe, expect, test } from "bun:test";

import type { OperatorDeployment } from "@pko/cluster";

import { credentialsProblem, operatorProblem, storageProblem } from "./shared-cluster.ts";

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

test("a cluster needs a default StorageClass", () => {
  const classes = (isDefault: string) => [
    { metadata: {} },
    { metadata: { annotations: { "storageclass.kubernetes.io/is-default-class": isDefault } } },
  ];
  expect(storageProblem(classes("true"))).toBeUndefined();
  expect(storageProblem(classes("false"))).toContain("has no default StorageClass");
  expect(storageProblem([])).toContain("has no default StorageClass");
});

describe("a kubeconfig", () => {
  const users = [
    { name: "ci", user: { token: "abc" } },
    { name: "cloud", user: { exec: { command: "cloud-login" } } },
  ];
  const contexts = users.map(({ name }) => ({ name: `as-${name}`, context: { cluster: "c", user: name } }));
  const kubeconfig = (current: string): string => JSON.stringify({ users, contexts, "current-context": current });

  test("that contains the credentials of its context can be used", () => {
    expect(credentialsProblem(kubeconfig("as-ci"))).toBeUndefined();
  });

  test("whose credentials come from another program is a problem", () => {
    expect(credentialsProblem(kubeconfig("as-cloud"))).toBe(
      "the kubeconfig of CLUSTER_KUBECONFIG gets the credentials of cloud from another program (exec), which tests cannot run: use one with the token of a service account",
    );
  });
});
