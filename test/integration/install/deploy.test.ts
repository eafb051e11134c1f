/** `make deploy` on a cluster with another operator. On a cluster without one, test/e2e/install/deploy.test.ts tests it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { attempt, repositoryRoot } from "@pko/cluster";
import { startApiServer, waitFor, type ApiServer } from "@pko/testkit";
import { parse, stringify } from "yaml";

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
  writeFileSync(
    helm,
    `#!/bin/sh
case "$*" in
  *" version "*) echo "\${HELM_VERSION:-v3.17.0+g301108e}" ;;
  *) echo "$*" >> '${calls}'; exit "\${HELM_CODE:-0}" ;;
esac
`,
  );
  chmodSync(helm, 0o755);
}, testTimeoutMs);

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

/** The exit code, standard error and its errors, and the arguments with which the chart was installed. */
async function deploy(...variables: readonly string[]) {
  rmSync(calls, { force: true });
  const given = [`CLUSTER_KUBECONFIG=${server.kubeconfig}`, "CONTEXT=", "IMAGE=registry.example.com/operator:dev"];
  const { code, stderr } = await attempt(["make", "-s", "deploy", ...given, ...variables], {
    cwd: repositoryRoot,
    env: { PATH: `${folder}:${process.env["PATH"] ?? ""}` },
  });
  const errors = stderr.split("\n").filter((line) => line.startsWith("error:"));
  return { code, errors, stderr, helm: existsSync(calls) ? readFileSync(calls, "utf8") : "" };
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

const applyQuickstart = async (): Promise<string> => {
  await server.kubectl(["apply", "--server-side", "--force-conflicts", "--filename", quickstart]);
  return await deployments();
};

test(
  "replaces this operator, installed with the quickstart, without a request",
  async () => {
    expect(await applyQuickstart()).toContain("pulumi-kubernetes-operator:v3");
    expect(await deploy()).toMatchObject({ code: 0, errors: [], helm: expect.stringContaining("upgrade") as string });
    expect(await deployments()).toBe("");
  },
  testTimeoutMs,
);

test(
  "keeps the operator of the quickstart if Helm fails",
  async () => {
    const before = await applyQuickstart();
    const { code, helm } = await deploy("HELM_CODE=1");
    expect(code).not.toBe(0);
    expect(helm).toContain("upgrade");
    expect(await deployments()).toBe(before);
  },
  testTimeoutMs,
);

test(
  "stops if Helm is too old, before it changes anything",
  async () => {
    const before = await applyQuickstart();
    expect(await deploy("HELM_VERSION=v3.16.4+g7877b45")).toMatchObject({
      errors: [
        "error: Helm v3.16.4+g7877b45 is too old to take over objects that were installed without it (--take-ownership): install Helm 3.17 or newer",
      ],
      helm: "",
    });
    expect(await deployments()).toBe(before);
  },
  testTimeoutMs,
);

const goDeployment = "pko-pulumi-kubernetes-operator-controller-manager";
const inOtherNamespace = [goDeployment, "--namespace=pulumi-system"];

test(
  "stops if the Go operator is installed in another namespace, where it cannot replace it",
  async () => {
    await server.kubectl(["create", "namespace", "pulumi-system"]);
    const image = "--image=pulumi/pulumi-kubernetes-operator:v2.9.0";
    await server.kubectl(["create", "deployment", ...inOtherNamespace, image]);
    for (const variables of [[], ["REPLACE=1"]]) {
      expect(await deploy(...variables)).toMatchObject({
        errors: [
          `error: the Go operator is installed on this cluster (Deployment ${goDeployment} in namespace pulumi-system), ` +
            "and make deploy would install a second one in namespace pulumi-kubernetes-operator, so that both change the same Stacks: " +
            "use another cluster, or follow docs/migration.md to switch it where it is, or scale it to zero and set REPLACE=1",
        ],
        helm: "",
      });
    }
    await server.kubectl(["scale", "deployment", ...inOtherNamespace, "--replicas=0"]);
    expect(await deploy("REPLACE=1")).toMatchObject({ code: 0, errors: [] });
  },
  testTimeoutMs,
);

test(
  "searches only the operator's namespace, and reports it, if the user may not list Deployments of all namespaces",
  async () => {
    await server.kubectl(["scale", "deployment", ...inOtherNamespace, "--replicas=1"]);
    const limited = await limitedKubeconfig();
    const { code, errors, stderr } = await deploy(`CLUSTER_KUBECONFIG=${limited}`);
    expect(errors).toEqual([]);
    expect(stderr).toContain(`so only namespace ${namespace} is searched for an operator\n`);
    expect(code).toBe(0);
  },
  testTimeoutMs,
);

/** Of a user who may read and delete Deployments in the operator's namespace. */
async function limitedKubeconfig(): Promise<string> {
  const where = `--namespace=${namespace}`;
  await server.kubectl(["create", "role", "limited", "--verb=get,list,delete", "--resource=deployments", where]);
  await server.kubectl(["create", "rolebinding", "limited", "--role=limited", "--user=limited", where]);
  const config = parse(readFileSync(server.kubeconfig, "utf8")) as { users: { user: object }[] };
  const users = config.users.map((each) => ({ ...each, user: { ...each.user, as: "limited" } }));
  // Beside the other one, whose paths are relative.
  const path = join(dirname(server.kubeconfig), "limited.yaml");
  writeFileSync(path, stringify({ ...config, users }));
  // The API server enforces a new role after a delay.
  const list = ["get", "deployments", where, "--as=limited"];
  await waitFor(async () => (await server.kubectl(list)) !== undefined, { what: "the role to be effective" });
  return path;
}
