/**
 * Creates and upgrades the operator's CRDs when a new version of the operator starts.
 *
 * Helm installs a chart's CRDs with a new release, and never adds or changes one after that. So an upgrade, also from the Go
 * operator's chart, needs no command besides Helm's. The operator deletes no CRD: the objects stay when the chart is
 * uninstalled.
 */
import {
  customResourceDefinitions,
  crdHashAnnotation,
  crdVersionAnnotation,
  isNewer,
  type CustomResourceDefinition,
} from "@pko/api";
import { isForbidden, resource, type Client, type KubeObject, type Logger } from "@pko/kube";

const crds = resource<KubeObject>({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
});

const fieldManager = "pulumi-kubernetes-operator";

interface CrdUpgrade {
  readonly client: Client;
  readonly log: Logger;
  readonly wanted?: readonly CustomResourceDefinition[];
}

export async function upgradeCrds({ client, log, wanted = customResourceDefinitions() }: CrdUpgrade): Promise<void> {
  for (const crd of wanted) {
    const { name } = crd.metadata;
    try {
      const present = await client.find(crds, { name });
      const step = stepFor(present, crd);
      await take(step, client, crd);
      const message = messages[step];
      if (message) log[step === "newer" ? "warn" : "info"](message, { crd: name });
    } catch (error) {
      // The operator works with older CRDs, too: fields that they lack have no effect. It waits for one that is missing.
      if (!isForbidden(error)) throw error;
      log.warn("the operator may not install its CRDs: apply the CRDs of its version yourself", { crd: name });
    }
  }
}

type Step = "none" | "create" | "upgrade" | "newer";

const messages: Readonly<Record<Step, string | undefined>> = {
  none: undefined,
  create: "CRD created",
  upgrade: "CRD upgraded",
  newer: "a CRD belongs to a newer operator and is not changed",
};

/** An operator that was rolled back keeps the newer CRD, because objects may use its fields. */
function stepFor(present: KubeObject | undefined, wanted: CustomResourceDefinition): Step {
  if (!present) return "create";
  const annotations = present.metadata.annotations ?? {};
  const ours = wanted.metadata.annotations;
  if (annotations[crdHashAnnotation] === ours[crdHashAnnotation]) return "none";
  const theirs = annotations[crdVersionAnnotation];
  return theirs !== undefined && isNewer(theirs, ours[crdVersionAnnotation] ?? "") ? "newer" : "upgrade";
}

async function take(step: Step, client: Client, crd: CustomResourceDefinition): Promise<void> {
  switch (step) {
    case "create":
      return await create(client, crd);
    case "upgrade":
      return await patch(client, crd);
    case "none":
    case "newer":
      return;
  }
}

/** With server-side apply, because only then can a role limit the permission to create CRDs to their names. */
async function create(client: Client, crd: CustomResourceDefinition): Promise<void> {
  await client.apply(crds, crd, { fieldManager });
}

/** A merge patch replaces lists as a whole, so nothing of the old schema remains. */
async function patch(client: Client, { metadata, spec }: CustomResourceDefinition): Promise<void> {
  const { names, versions } = spec;
  const body = { metadata: { annotations: metadata.annotations }, spec: { names, versions } };
  await client.patch(crds, { name: metadata.name }, { patch: { type: "merge", body }, fieldManager });
}
