import { expect, test } from "bun:test";

import { clusterKubeconfig } from "./given-cluster.ts";
import { run } from "./shell.ts";
import { userShellSetup } from "./user-shell.ts";

test("sets up a shell that finds the plugin of kubectl and the kubeconfig of the cluster", async () => {
  const script = `${await userShellSetup()}; echo "$KUBECONFIG"; kubectl-pulumi --help`;
  const output = await run(["sh", "-c", script]);
  expect(output).toStartWith(`${clusterKubeconfig()}\n`);
  expect(output).toContain("Usage: kubectl pulumi");
}, 60_000);
