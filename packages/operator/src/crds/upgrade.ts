/**
 * Upgrades the operator's CRDs when a new version of the operator starts.
 *
 * Helm installs a chart's CRDs once and never changes them after that, and it does not adopt those of another chart. The
 * operator may change its four CRDs, but create or delete none: an upgrade needs no command besides Helm's, and the objects
 * stay when the chart is uninstalled.
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
      if (step === "upgrade") await patch(client, crd);
      const message = messages[step];
      if (message) log[step === "upgrade" ? "info" : "warn"](message, { crd: name });
    } catch (error) {
      // The operator works with older CRDs, too: fields that they lack have no effect.
      if (!isForbidden(error)) throw error;
      log.warn("the operator may not upgrade its CRDs: apply the CRDs of its version yourself", { crd: name });
    }
  }
}

type Step = "none" | "upgrade" | "absent" | "newer";

const messages: Readonly<Record<Step, string | undefined>> = {
  none: undefined,
  upgrade: "CRD upgraded",
  absent: "a CRD is missing: install it, the operator waits for it",
  newer: "a CRD belongs to a newer operator and is not changed",
};

/** An operator that was rolled back keeps the newer CRD, because objects may use its fields. */
function stepFor(present: KubeObject | undefined, wanted: CustomResourceDefinition): Step {
  if (!present) return "absent";
  const annotations = present.metadata.annotations ?? {};
  const ours = wanted.metadata.annotations;
  if (annotations[crdHashAnnotation] === ours[crdHashAnnotation]) return "none";
  const theirs = annotations[crdVersionAnnotation];
  return theirs !== undefined && isNewer(theirs, ours[crdVersionAnnotation] ?? "") ? "newer" : "upgrade";
}

/** A merge patch replaces lists as a whole, so nothing of the old schema remains. */
async function patch(client: Client, { metadata, spec }: CustomResourceDefinition): Promise<void> {
  const { names, versions } = spec;
  const body = { metadata: { annotations: metadata.annotations }, spec: { names, versions } };
  await client.patch(crds, { name: metadata.name }, { patch: { type: "merge", body }, fieldManager });
}
