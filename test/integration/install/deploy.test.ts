/** `make deploy` on a cluster with another operator. On a cluster without one, test/e2e/install/deploy.test.ts tests it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { attempt, repositoryRoot } from "@pko/cluster";
import { startApiServer, type ApiServer } from "@pko/testkit";

import { quickstart, testTimeoutMs } from "../api/install.ts";

const goManifest = fileURLToPath(new URL("testdata/reference-quickstart.yaml", import.meta.url));
const namespace = "pulumi-kubernetes-operator";
const folder = mkdtempSync(join(tmpdir(), "pko-deploy-"));
const calls = join(folder, "calls");
let server: ApiServer;

beforeAll(async () => {
  server = await startApiServer();
  // Without nodes, an installation would wait forever for its pod: these tests are about what happens before.
  const helm = join(folder, "helm");
  writeFileSync(helm, `#!/bin/sh\necho "$*" >> '${calls}'\n`);
  chmodSync(helm, 0o755);
}, testTimeoutMs);

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

/** Standard error, the exit code, and the arguments with which the chart was installed. */
async function deploy(...variables: readonly string[]) {
  rmSync(calls, { force: true });
  const given = [`CLUSTER_KUBECONFIG=${server.kubeconfig}`, "IMAGE=registry.example.com/operator:dev"];
  const { code, stderr } = await attempt(["make", "-s", "deploy", ...given, ...variables], {
    cwd: repositoryRoot,
    env: { PATH: `${folder}:${process.env["PATH"] ?? ""}` },
  });
  const errors = stderr.split("\n").filter((line) => line.startsWith("error:"));
  return { code, errors, helm: existsSync(calls) ? readFileSync(calls, "utf8") : "" };
}

const deployments = async (): Promise<string> =>
  await server.kubectl(["get", "deployments", "-n", namespace, "-o", "jsonpath={..image}"]);

test(
  "stops if the Go operator is installed, and replaces it only on request",
  async () => {
    await server.kubectl(["apply", "--server-side", "--filename", goManifest]);
    const before = await deployments();
    expect(before).toContain("pulumi-kubernetes-operator:v2");
    for (const variables of [[], ["REPLACE="], ["REPLACE=0"]]) {
      expect(await deploy(...variables)).toMatchObject({
        errors: [
          "error: the Go operator is installed on this cluster (Deployment controller-manager in namespace pulumi-kubernetes-operator), " +
            "and make deploy would replace it: use another cluster, or follow docs/migration.md and set REPLACE=1 to switch",
        ],
        helm: "",
      });
      expect(await deployments()).toBe(before);
    }
    expect(await deploy("REPLACE=1")).toMatchObject({
      code: 0,
      errors: [],
      helm: expect.stringContaining("upgrade") as string,
    });
    expect(await deployments()).toBe("");
  },
  testTimeoutMs,
);

test(
  "replaces this operator, installed with the quickstart, without a request",
  async () => {
    await server.kubectl(["apply", "--server-side", "--force-conflicts", "--filename", quickstart]);
    expect(await deploy()).toMatchObject({ code: 0, errors: [], helm: expect.stringContaining("upgrade") as string });
  },
  testTimeoutMs,
);
