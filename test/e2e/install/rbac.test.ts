/** The operator with the rights that chart and quickstart give it, through a proxy that records what it asks for. */
import { expect, test } from "bun:test";
import { join } from "node:path";

import { ownRules, servedRules, type Rule } from "@pko/api";
import { workspaces } from "@pko/operator";
import { faultProxy, waitFor, type FaultProxy, type ProxiedRequest } from "@pko/testkit";

import { operatorAccount } from "../../rights/account.ts";
import {
  applyTo,
  clusterCredentials,
  configMapOf,
  deleteStack,
  fromSecret,
  isReady,
  kubectl,
  newNamespace,
  programOf,
  removeNamespace,
  secretOf,
  stackOf,
  stackUntil,
  updatesOf,
  useScene,
} from "../harness.ts";

const slow = 240_000;

let proxy: FaultProxy;

const scene = useScene("rbac", {
  operator: async () => {
    await ensureFluxKind();
    const home = await newNamespace("rbac-home");
    scene.defer(() => removeNamespace(home));
    const account = await operatorAccount({ admin: await clusterCredentials(), home, namespaces: [scene.namespace] });
    scene.defer(() => account.remove());
    proxy = await faultProxy(account.credentials);
    scene.defer(() => proxy.close());
    const kubeconfig = join(scene.folder, "kubeconfig");
    await Bun.write(kubeconfig, proxy.kubeconfig);
    const election = ["--leader-elect", "--lease-duration=3s", "--renew-deadline=2s", "--retry-period=500ms"];
    return { flags: [`--kubeconfig=${kubeconfig}`, `--namespace=${home}`, ...election] };
  },
});

test(
  "nothing that it asks for is refused, and it has no right that it does not use",
  async () => {
    await applyTo(scene, ...inputs(), stack(), fluxStack());
    const web = await stackUntil(scene, "web", isReady);
    expect(web.status?.outputs).toEqual({ greeting: "[secret]" });
    await waitFor(async () => (await updatesOf(scene, "web")).length === 0, {
      timeoutMs: slow / 3,
      what: "the Update to expire",
    });
    await waitFor(
      async () => (await scene.client.list(workspaces, { namespace: scene.namespace })).items.length === 0,
      {
        timeoutMs: slow / 3,
        what: "the Workspace to be reclaimed",
      },
    );
    await deleteStack(scene, "web", "flux");

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
  // An Update that the store does not show yet (test/integration/workspace/doubts.test.ts).
  "auto.pulumi.com updates get",
  // Never a request: the tests' API server requires them of whoever creates an object that blocks the deletion of its owner.
  "auto.pulumi.com updates/finalizers update",
  "auto.pulumi.com workspaces/finalizers update",
  // Outputs that a crash left half-written are replaced.
  " secrets delete",
  // An event that repeats is counted.
  " events patch",
  // A pod that the StatefulSet's controller does not get away.
  " pods delete",
  // A StatefulSet of the Go operator that differs where nothing can be changed is replaced.
  "apps statefulsets delete",
  // An Update that exists already is judged.
  "auto.pulumi.com updates get",
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

/** The CRD of Flux where Flux is installed, otherwise one that suffices. */
async function ensureFluxKind(): Promise<void> {
  const openAPIV3Schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  const kind = {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "gitrepositories.source.toolkit.fluxcd.io" },
    spec: {
      group: "source.toolkit.fluxcd.io",
      scope: "Namespaced",
      names: { kind: "GitRepository", plural: "gitrepositories" },
      versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  };
  // The tests with Flux itself bring it as well, perhaps at the same time: theirs is never changed.
  await kubectl(["create", "-f", "-"], { input: JSON.stringify(kind) }).catch((error: unknown) => {
    if (!String(error).includes("AlreadyExists")) throw error;
  });
}

const inputs = (): object[] => [
  secretOf("inputs", { who: "world" }),
  configMapOf("settings", { LANG: "C.UTF-8" }),
  programOf("web", {
    configuration: { who: { type: "string", secret: true } },
    outputs: { greeting: "hello ${who}" },
  }),
];

const stack = (): object =>
  stackOf("web", {
    programRef: { name: "web" },
    envs: ["settings"],
    secretsRef: { who: fromSecret("inputs", "who") },
    destroyOnFinalize: true,
    workspaceReclaimPolicy: "Delete",
    updateTemplate: { spec: { ttlAfterCompleted: "5s" } },
  });

const fluxStack = (): object =>
  stackOf("flux", {
    fluxSource: { sourceRef: { apiVersion: "source.toolkit.fluxcd.io/v1", kind: "GitRepository", name: "absent" } },
  });
