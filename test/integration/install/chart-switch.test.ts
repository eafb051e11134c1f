/**
 * `helm upgrade` from the Go operator's chart, which has no CRDs of the kinds that are new. Runs real Helm on a separate API
 * server, and what the operator does at its start with the permissions that the chart grants.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";

import { crdHashAnnotation, customResourceDefinitions, kindDefinitions } from "@pko/api";
import {
  connect,
  isForbidden,
  resource,
  silentLogger,
  staticCredentials,
  type Client,
  type KubeObject,
  type Logger,
} from "@pko/kube";
import { upgradeCrds } from "@pko/operator";
import { serviceAccountToken, startApiServer, waitFor, type ApiServer } from "@pko/testkit";

import { chart, helmOn, manifestsIn } from "../../e2e/install/helm.ts";
import { testTimeoutMs } from "../api/install.ts";
import { referenceCrds } from "./reference-crds.ts";

const release = "pulumi-kubernetes-operator";
const goChart = join(import.meta.dir, "../../e2e/install/testdata/go-operator");
const wanted = customResourceDefinitions();

const crds = resource<KubeObject>({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
});

let server: ApiServer;

beforeAll(async () => {
  server = await startApiServer();
  await installGoOperator();
}, testTimeoutMs);

afterAll(() => server.stop());

async function helm(...args: readonly string[]): Promise<string> {
  return await helmOn(server.kubeconfig, ...args, `--namespace=${release}`);
}

async function installGoOperator(): Promise<void> {
  for (const { name, versions } of referenceCrds()) {
    const definition = wanted.find(({ metadata }) => metadata.name === name);
    if (!definition) throw new Error(`${name} is no kind of this operator`);
    const { apiVersion, kind, spec } = definition;
    await server.client.create(crds, {
      apiVersion,
      kind,
      metadata: { name },
      spec: { ...spec, versions },
    } as KubeObject);
  }
  await helm("install", "--create-namespace", release, goChart, `--set=fullnameOverride=${release}`);
}

/** The hash of each CRD that exists. */
async function readHashes(): Promise<Map<string, string | undefined>> {
  const { items } = await server.client.list(crds);
  return new Map(items.map(({ metadata: { name = "", annotations } }) => [name, annotations?.[crdHashAnnotation]]));
}

const wantedHashes = new Map(wanted.map(({ metadata }) => [metadata.name, metadata.annotations[crdHashAnnotation]]));

/** A client with the token of the service account that the operator's pod uses. */
async function clientOfOperator(): Promise<Client> {
  const deployment = manifestsIn(await helm("get", "manifest", release)).find(({ kind }) => kind === "Deployment");
  if (!deployment) throw new Error("the chart has no Deployment");
  const { template } = deployment.spec as unknown as { template: { spec: { serviceAccountName: string } } };
  const account = { namespace: release, name: template.spec.serviceAccountName };
  const token = await serviceAccountToken(server.client, account);
  return connect(staticCredentials({ server: server.url, token, tls: { ca: server.authority.cert } }));
}

/** Returns the CRDs that the operator was not permitted to install. */
async function startOperator(): Promise<unknown[]> {
  const denied: unknown[] = [];
  const log: Logger = { ...silentLogger, warn: (_, fields) => denied.push(fields?.["crd"]) };
  await upgradeCrds({ client: await clientOfOperator(), log });
  return denied;
}

/** The API server respects a changed role after a delay. */
async function startOperatorUntil(isExpected: (denied: readonly unknown[]) => boolean): Promise<void> {
  await waitFor(async () => isExpected(await startOperator()), {
    timeoutMs: testTimeoutMs / 2,
    what: "the role to be in force",
  });
}

const nothingDenied = (denied: readonly unknown[]): boolean => denied.length === 0;

/** Returns once the API server serves all kinds. */
async function kindsAreServed(): Promise<void> {
  const kinds = kindDefinitions.map(({ plural, group }) => `${plural}.${group}`).join(",");
  await waitFor(async () => (await server.kubectl(["get", kinds, "--all-namespaces"])) !== undefined, {
    timeoutMs: testTimeoutMs / 2,
    what: "the kinds to be served",
  });
}

test(
  "helm upgrade is the whole switch: the operator creates the CRDs of the new kinds",
  async () => {
    expect([...(await readHashes()).keys()].toSorted()).toEqual([
      "programs.pulumi.com",
      "stacks.pulumi.com",
      "updates.auto.pulumi.com",
      "workspaces.auto.pulumi.com",
    ]);
    await helm("upgrade", release, chart, "--reset-then-reuse-values");
    await startOperatorUntil(nothingDenied);
    expect(await readHashes()).toEqual(wantedHashes);
    await kindsAreServed();
  },
  testTimeoutMs,
);

test(
  "the operator may create no other CRD, not even one of its group",
  async () => {
    const client = await clientOfOperator();
    const [first] = wanted;
    if (!first) throw new Error("there is no CRD");
    const { apiVersion, kind, spec } = first;
    const names = { ...spec.names, plural: "others", singular: "other", kind: "Other", listKind: "OtherList" };
    const other = { apiVersion, kind, metadata: { name: `others.${spec.group}` }, spec: { ...spec, names } } as never;
    const attempts = [() => client.apply(crds, other, { fieldManager: "test" }), () => client.create(crds, other)];
    for (const attempt of attempts) expect(isForbidden(await attempt().catch((error: unknown) => error))).toBe(true);
  },
  testTimeoutMs,
);

test.each([
  ["a rollback to the Go operator", () => helm("rollback", release, "1")],
  ["the next upgrade", () => helm("upgrade", release, chart, "--reset-then-reuse-values")],
  ["an uninstallation", () => helm("uninstall", release)],
  ["a new installation", () => helm("install", release, chart)],
  ["an installation under another name", () => helm("install", "second", chart, "--set=admissionPolicy.enabled=false")],
])(
  "%s succeeds and keeps the CRDs",
  async (_, operation) => {
    const before = await server.client.list(crds);
    await operation();
    const after = await server.client.list(crds);
    const identities = ({ items }: typeof before) => items.map(({ metadata }) => [metadata.name, metadata.uid]);
    expect(identities(after)).toEqual(identities(before));
    expect(await readHashes()).toEqual(wantedHashes);
  },
  testTimeoutMs,
);

test(
  "an operator that starts after an upgrade creates a CRD that is missing, if it is permitted, and leaves the others alone",
  async () => {
    const name = "updaterecords.auto.pulumi.com";
    await helm("upgrade", release, chart, "--set=crds.upgrade=false");
    await startOperatorUntil((denied) => denied.includes(name));
    await server.client.delete(crds, { name });
    await waitFor(async () => (await server.client.find(crds, { name })) === undefined, {
      timeoutMs: testTimeoutMs / 2,
      what: "the CRD to be deleted",
    });
    const versions = async () =>
      (await server.client.list(crds)).items
        .filter(({ metadata }) => metadata.name !== name)
        .map(({ metadata }) => metadata.resourceVersion);
    const before = await versions();
    expect(await startOperator()).toContain(name);
    await helm("upgrade", release, chart, "--reset-values");
    await startOperatorUntil(nothingDenied);
    expect(await readHashes()).toEqual(wantedHashes);
    expect(await versions()).toEqual(before);
  },
  testTimeoutMs,
);

test(
  "the Helm release contains no CRD, so that no Helm operation changes or deletes one",
  async () => {
    expect(await helm("get", "manifest", release)).not.toContain("kind: CustomResourceDefinition");
  },
  testTimeoutMs,
);
