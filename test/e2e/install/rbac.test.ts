/** The operator with the rights that chart and quickstart give it, through a proxy that records what it asks for. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { ownRules, servedRules, type Rule } from "@pko/api";
import { clusterKubeconfig } from "@pko/cluster";
import { kubeconfigCredentials } from "@pko/kube";
import { workspaces } from "@pko/operator";
import { faultProxy, waitFor, type FaultProxy, type ProxiedRequest } from "@pko/testkit";

import { operatorAccount } from "../account.ts";
import {
  apply,
  installApi,
  isReady,
  kubectl,
  newNamespace,
  onFileBackend,
  removeNamespace,
  stackUntil,
  startOperator,
  updatesOf,
  type Operator,
  type Place,
} from "../harness.ts";

const slow = 240_000;

let proxy: FaultProxy;
let operator: Operator;
let place: Place;
let home: string;

beforeAll(async () => {
  await installApi();
  home = await newNamespace("rbac-home");
  const namespace = await newNamespace("rbac");
  await apply(foreignStatefulSet(namespace), ...(await missingFluxKind()));
  proxy = await faultProxy(await kubeconfigCredentials(clusterKubeconfig()));
  operator = await startOperator(
    [namespace],
    `--kubeconfig=${await recordedKubeconfig(namespace)}`,
    `--namespace=${home}`,
    "--leader-elect",
    "--lease-duration=3s",
    "--renew-deadline=2s",
    "--retry-period=500ms",
  );
  place = { client: operator.client, namespace };
}, slow);

afterAll(async () => {
  await removeNamespace(place.namespace);
  await operator.stop();
  await proxy.close();
  await removeNamespace(home);
}, slow);

test(
  "nothing that it asks for is refused, and it has no right that it does not use",
  async () => {
    await apply(...inputs(), stack(), fluxStack());
    const web = await stackUntil(place, "web", isReady);
    expect(web.status?.outputs).toEqual({ greeting: "[secret]" });
    await waitFor(async () => (await updatesOf(place, "web")).length === 0, {
      timeoutMs: slow / 3,
      what: "the Update to expire",
    });
    await waitFor(
      async () => (await place.client.list(workspaces, { namespace: place.namespace })).items.length === 0,
      {
        timeoutMs: slow / 3,
        what: "the Workspace to be reclaimed",
      },
    );
    await kubectl(["delete", "stack", "web", "flux", "--timeout=120s", ...there()]);

    const refused = proxy.requests.filter(({ status }) => status === 403);
    expect(refused.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
    const used = new Set(proxy.requests.flatMap(rightsOf));
    const unused = [...rightsIn(servedRules), ...rightsIn(ownRules)].filter((right) => !used.has(right));
    expect(unused.filter((right) => !seldomUsed.has(right))).toEqual([]);
  },
  slow,
);

/** What no ordinary day asks for. */
const seldomUsed = new Set([
  // Checked by OpenShift of whoever makes an object that holds up the deletion of its owner; never a request.
  "auto.pulumi.com updates/finalizers update",
  "auto.pulumi.com workspaces/finalizers update",
  "pulumi.com stacks/finalizers update",
  // Outputs that a crash left half-written are replaced.
  " secrets delete",
  // An event that repeats is counted.
  " events patch",
  // A pod that the StatefulSet's controller does not get away.
  " pods delete",
  // Other kinds of Flux than the one that this test follows.
  ...["buckets", "externalartifacts", "helmcharts", "ocirepositories"].flatMap((kind) =>
    ["list", "watch"].map((verb) => `source.toolkit.fluxcd.io ${kind} ${verb}`),
  ),
]);

/** An apply is a patch, and a creation as well where there was nothing. */
function rightsOf({ group, resource, subresource, verb, status }: ProxiedRequest): string[] {
  const what = subresource === undefined ? resource : `${resource}/${subresource}`;
  const verbs = verb === "apply" ? ["patch", ...(status === 201 ? ["create"] : [])] : [verb];
  return verbs.map((each) => `${group} ${what} ${each}`);
}

function rightsIn(rules: readonly Rule[]): string[] {
  return rules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((what) => verbs.map((verb) => `${group} ${what} ${verb}`))),
  );
}

const there = (): string[] => ["-n", place.namespace];

async function recordedKubeconfig(namespace: string): Promise<string> {
  const file = join(mkdtempSync(join(tmpdir(), "pko-rbac-")), "kubeconfig");
  const authority = Buffer.from(proxy.ca).toString("base64");
  const cluster = { server: proxy.url, "certificate-authority-data": authority };
  const { kubeconfig } = await operatorAccount({ kubectl, home, namespaces: [namespace], cluster });
  await Bun.write(file, kubeconfig);
  return file;
}

/** One that differs where nothing can be changed, as another operator may have left it. */
function foreignStatefulSet(namespace: string): object {
  const labels = { app: "foreign" };
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name: "web-workspace", namespace },
    spec: {
      serviceName: "foreign",
      replicas: 0,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "pulumi", image: "busybox" }] } },
    },
  };
}

/** Flux's own definition where it is installed, else one that suffices. */
async function missingFluxKind(): Promise<object[]> {
  const name = "gitrepositories.source.toolkit.fluxcd.io";
  if ((await kubectl(["get", "crd", name, "--ignore-not-found", "-o", "name"])) !== "") return [];
  const openAPIV3Schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  return [
    {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name },
      spec: {
        group: "source.toolkit.fluxcd.io",
        scope: "Namespaced",
        names: { kind: "GitRepository", plural: "gitrepositories" },
        versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema } }],
      },
    },
  ];
}

const inputs = (): object[] => [
  {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "inputs", namespace: place.namespace },
    stringData: { who: "world" },
  },
  {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "settings", namespace: place.namespace },
    data: { LANG: "C.UTF-8" },
  },
  {
    apiVersion: "pulumi.com/v1",
    kind: "Program",
    metadata: { name: "web", namespace: place.namespace },
    program: {
      configuration: { who: { type: "string", secret: true } },
      outputs: { greeting: "hello ${who}" },
    },
  },
];

const stack = (): object => ({
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  metadata: { name: "web", namespace: place.namespace },
  spec: {
    ...onFileBackend,
    stack: "web",
    programRef: { name: "web" },
    envs: ["settings"],
    secretsRef: { who: { type: "Secret", secret: { name: "inputs", key: "who" } } },
    destroyOnFinalize: true,
    workspaceReclaimPolicy: "Delete",
    updateTemplate: { spec: { ttlAfterCompleted: "5s" } },
  },
});

const fluxStack = (): object => ({
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  metadata: { name: "flux", namespace: place.namespace },
  spec: {
    ...onFileBackend,
    stack: "flux",
    fluxSource: { sourceRef: { apiVersion: "source.toolkit.fluxcd.io/v1", kind: "GitRepository", name: "absent" } },
  },
});
