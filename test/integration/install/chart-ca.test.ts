/** No Helm operation changes the CA. Runs real Helm and the operator's CA code on a real API server. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { caSecretName, formerCaSecretName, leaseName } from "@pko/api";
import { builtin, type ApiObject } from "@pko/kube";
import { operatorCa } from "@pko/operator";
import { testNamespace, type TestNamespace } from "@pko/testkit";
import type { Secret } from "kubernetes-types/core/v1";

import { chart, helmOn } from "../../e2e/install/helm.ts";
import { apiServerWithApi, testTimeoutMs } from "../api/install.ts";

const folder = mkdtempSync(join(tmpdir(), "pko-chart-ca-"));
/** The chart as it was when it contained the Secret of the CA. */
const oldChart = join(folder, "chart");
const release = "pulumi-kubernetes-operator";
let place: TestNamespace;

beforeAll(async () => {
  place = await testNamespace({ server: await apiServerWithApi() });
  cpSync(chart, oldChart, { recursive: true });
  cpSync(join(import.meta.dir, "former-state.yaml.tpl"), join(oldChart, "templates/state.yaml"));
}, testTimeoutMs);

afterAll(async () => {
  await helm("uninstall", release, "--ignore-not-found");
  await place.remove();
  rmSync(folder, { recursive: true, force: true });
}, testTimeoutMs);

async function helm(...args: readonly string[]): Promise<string> {
  return await helmOn(place.server.kubeconfig, ...args, "--namespace", place.name);
}

/** Cluster-scoped objects get unique names, and the CRDs are shared by all tests. */
const values = (): string[] => [
  "--skip-crds",
  `--set=fullnameOverride=${place.name},watchNamespaces={${place.name}}`,
  "--set=crds.upgrade=false,admissionPolicy.enabled=false",
];

async function findSecret(name: string): Promise<ApiObject<Secret> | undefined> {
  return await place.client.find(builtin.secrets, { namespace: place.name, name });
}

/** The CA bundle of an operator that starts now. */
async function trustBundle(): Promise<string> {
  const starting = operatorCa({ client: place.client, namespace: place.name });
  await starting.load();
  return starting.operatorCredentials().ca;
}

test(
  "an upgrade from a chart that contains the Secret of the CA keeps it, and the operator adopts the CA",
  async () => {
    await helm("install", release, oldChart, ...values());
    // The operator of that chart wrote the data of the Secret.
    const other = await testNamespace({ server: place.server });
    const former = operatorCa({ client: other.client, namespace: other.name });
    await former.load();
    const { data } = await other.client.get(builtin.secrets, { namespace: other.name, name: caSecretName });
    await other.remove();
    const patch = { type: "merge", body: { data } } as const;
    await place.client.patch(builtin.secrets, { namespace: place.name, name: formerCaSecretName }, { patch });

    await helm("upgrade", release, chart, ...values());
    expect((await findSecret(formerCaSecretName))?.data).toEqual(data as never);
    expect(await trustBundle()).toBe(former.operatorCredentials().ca);
    expect((await findSecret(caSecretName))?.data).toEqual(data as never);
  },
  testTimeoutMs,
);

test.each([
  ["helm upgrade", () => helm("upgrade", release, chart, ...values())],
  ["helm upgrade --force", () => helm("upgrade", "--force", release, chart, ...values())],
  ["helm rollback to the old chart", () => helm("rollback", release, "1")],
  ["helm upgrade after the rollback", () => helm("upgrade", release, chart, ...values())],
  ["helm uninstall", () => helm("uninstall", release)],
  ["helm install after the uninstallation", () => helm("install", release, chart, ...values())],
  ["helm upgrade --force of the new release", () => helm("upgrade", "--force", release, chart, ...values())],
  ["helm uninstall of the new release", () => helm("uninstall", release)],
])(
  "%s does not change the CA",
  async (_, operation) => {
    const before = await findSecret(caSecretName);
    const bundle = await trustBundle();
    await operation();
    expect(await findSecret(caSecretName)).toEqual(before as never);
    expect(await trustBundle()).toBe(bundle);
  },
  testTimeoutMs,
);

test(
  "a new release contains neither a Secret nor a Lease",
  async () => {
    await helm("install", release, chart, ...values());
    const manifest = await helm("get", "manifest", release);
    expect(manifest).not.toContain("kind: Secret");
    expect(manifest).not.toContain(`name: ${leaseName}`);
  },
  testTimeoutMs,
);
