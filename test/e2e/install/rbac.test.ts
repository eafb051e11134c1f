/** The operator with the RBAC rules of an installation, through a proxy that records its requests. */
import { expect, test } from "bun:test";
import { join } from "node:path";

import { ownRules, servedRules, type Rule } from "@pko/install";
import { workspaces } from "@pko/operator/kinds";
import { faultProxy, waitFor, type FaultProxy, type ProxiedRequest } from "@pko/testkit";

import { operatorAccount } from "../../rights/account.ts";
import {
  applyTo,
  at,
  clusterCredentials,
  deleteStack,
  fromSecret,
  hasReason,
  isReady,
  kubectl,
  listUpdates,
  newApproval,
  newConfigMap,
  newNamespace,
  newProgram,
  newSecret,
  newStack,
  removeNamespace,
  stackUntil,
  untilApprovalsAreChecked,
  useScene,
} from "../harness.ts";

const slow = 600_000;

let proxy: FaultProxy;

const scene = useScene("rbac", {
  operator: async () => {
    await ensureFluxCrd();
    const home = await newNamespace("rbac-home");
    scene.defer(() => removeNamespace(home));
    const account = await operatorAccount({ admin: await clusterCredentials(), home, namespaces: [scene.namespace] });
    scene.defer(() => account.remove());
    proxy = await faultProxy(account.credentials);
    scene.defer(() => proxy.close());
    const kubeconfig = join(scene.folder, "kubeconfig");
    await Bun.write(kubeconfig, proxy.kubeconfig);
    return { flags: [`--kubeconfig=${kubeconfig}`, `--namespace=${home}`, "--leader-elect"] };
  },
});

test(
  "no request is denied, and every permission is used",
  async () => {
    await untilApprovalsAreChecked(scene);
    await applyTo(scene, ...inputs(), stack(), fluxStack(), approvedStack(), receiver, notification);
    await kubectl([
      "wait",
      "receiver",
      receiver.metadata.name,
      ...at(scene),
      "--for=jsonpath={.status.conditions}",
      "--timeout=180s",
    ]);
    await kubectl([
      "wait",
      "notification",
      notification.metadata.name,
      ...at(scene),
      "--for=condition=Stalled",
      "--timeout=180s",
    ]);
    await approve("approved");
    await stackUntil(scene, "approved", isReady);
    const web = await stackUntil(scene, "web", isReady);
    expect(web.status?.outputs).toEqual({ greeting: "[secret]" });
    await waitFor(async () => (await listUpdates(scene, "web")).length === 0, {
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
    await deleteStack(scene, "web", "flux", "approved");

    const denied = proxy.requests.filter(({ status }) => status === 403);
    expect(denied.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
    const used = new Set(proxy.requests.flatMap(permissionsUsed));
    const granted = [...permissionsIn(servedRules), ...permissionsIn(ownRules)];
    expect(granted.filter((permission) => !used.has(permission) && !rarelyUsed.has(permission))).toEqual([]);
  },
  slow,
);

/** The operator reports that it does not serve webhooks here. */
const receiver = {
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "Receiver",
  metadata: { name: "hooks" },
  spec: { type: "GitHub", secretRef: { name: "hooks", key: "token" } },
};

/** The operator reports that its Secret does not exist. */
const notification = {
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "Notification",
  metadata: { name: "chat" },
  spec: { type: "Slack", secretRef: { name: "chat" } },
};

/** As the user of this test, who may approve. */
async function approve(name: string): Promise<void> {
  const { status } = await stackUntil(scene, name, hasReason("AwaitingApproval"));
  if (!status?.approval) throw new Error("there is no request");
  const decidedBy = await kubectl(["auth", "whoami", "--output=jsonpath={.status.userInfo.username}"]);
  const input = JSON.stringify(newApproval(status.approval, { decidedBy }));
  await kubectl(["create", ...at(scene), "-f", "-"], { input });
}

/** Permissions that this test does not use. */
const rarelyUsed = new Set([
  // The operator reads an Update that its cache does not contain yet, and one that already exists.
  "auto.pulumi.com updates get",
  // The operator looks at a record whose name is taken, and deletes the oldest beyond their budget.
  "auto.pulumi.com updaterecords get",
  "auto.pulumi.com updaterecords delete",
  // The API server requires these to set blockOwnerDeletion in an owner reference.
  "auto.pulumi.com updates/finalizers update",
  "auto.pulumi.com workspaces/finalizers update",
  // The claims with the caches of a WorkspaceClass.
  ...["get", "create", "patch"].map((verb) => ` persistentvolumeclaims ${verb}`),
  // Previews of pull requests, which test/integration/pull-requests creates with these roles.
  "pulumi.com stacks create",
  "pulumi.com stacks delete",
  // Replaces outputs that a crash left incomplete.
  " secrets delete",
  // Counts a repeated event.
  " events patch",
  // Deletes a pod that the StatefulSet controller does not replace.
  " pods delete",
  // Replaces a StatefulSet of the Go operator that differs in an immutable field.
  "apps statefulsets delete",
  // This test uses GitRepository only.
  ...["buckets", "externalartifacts", "helmcharts", "ocirepositories"].flatMap((kind) =>
    ["list", "watch"].map((verb) => `source.toolkit.fluxcd.io ${kind} ${verb}`),
  ),
]);

/** Server-side apply needs patch, and also create if the object does not exist. */
function permissionsUsed({ group, resource, subresource, verb, status }: ProxiedRequest): string[] {
  const what = subresource === undefined ? resource : `${resource}/${subresource}`;
  const verbs = verb === "apply" ? ["patch", ...(status === 201 ? ["create"] : [])] : [verb];
  return verbs.map((each) => `${group} ${what} ${each}`);
}

function permissionsIn(rules: readonly Rule[]): string[] {
  return rules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((what) => verbs.map((verb) => `${group} ${what} ${verb}`))),
  );
}

/** Creates a minimal CRD unless Flux is installed. */
async function ensureFluxCrd(): Promise<void> {
  const openAPIV3Schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  const crd = {
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
  // The tests of Flux may install the real CRD at the same time, and this must not change it.
  await kubectl(["create", "-f", "-"], { input: JSON.stringify(crd) }).catch((error: unknown) => {
    if (!String(error).includes("AlreadyExists")) throw error;
  });
}

const inputs = (): object[] => [
  newSecret("inputs", { who: "world" }),
  newConfigMap("settings", { LANG: "C.UTF-8" }),
  newProgram("web", {
    configuration: { who: { type: "string", secret: true } },
    outputs: { greeting: "hello ${who}" },
  }),
];

const stack = (): object =>
  newStack("web", {
    programRef: { name: "web" },
    envs: ["settings"],
    secretsRef: { who: fromSecret("inputs", "who") },
    destroyOnFinalize: true,
    workspaceReclaimPolicy: "Delete",
    updateTemplate: { spec: { ttlAfterCompleted: "5s" } },
  });

const fluxStack = (): object =>
  newStack("flux", {
    fluxSource: { sourceRef: { apiVersion: "source.toolkit.fluxcd.io/v1", kind: "GitRepository", name: "absent" } },
  });

const approvedStack = (): object =>
  newStack("approved", {
    programRef: { name: "web" },
    secretsRef: { who: fromSecret("inputs", "who") },
    approval: { required: "Always" },
    workspaceReclaimPolicy: "Delete",
  });
