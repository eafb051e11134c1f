/**
 * The definitions of our kinds, brought up to date when a new version of the operator starts.
 *
 * Helm installs a chart's definitions once and never again touches them, and it refuses to take over those that another
 * chart left. The operator may change its four definitions, make none and delete none: so an upgrade needs no command beside
 * Helm's, and what is there stays when the chart goes.
 */
import {
  customResourceDefinitions,
  crdHashAnnotation,
  crdVersionAnnotation,
  isNewer,
  type CustomResourceDefinition,
} from "@pko/api";
import { isForbidden, resource, type Client, type KubeObject, type Logger } from "@pko/kube";

const definitions = resource<KubeObject>({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
});

const fieldManager = "pulumi-kubernetes-operator";

interface Upgrading {
  readonly client: Client;
  readonly log: Logger;
  readonly wanted?: readonly CustomResourceDefinition[];
}

export async function upgradeDefinitions({
  client,
  log,
  wanted = customResourceDefinitions(),
}: Upgrading): Promise<void> {
  for (const definition of wanted) {
    const { name } = definition.metadata;
    try {
      const present = await client.find(definitions, { name });
      const step = stepFor(present, definition);
      if (step === "upgrade") await patch(client, definition);
      const message = messages[step];
      if (message) log[step === "upgrade" ? "info" : "warn"](message, { definition: name });
    } catch (error) {
      // It works with older definitions, too: fields that they lack have no effect.
      if (!isForbidden(error)) throw error;
      log.warn("the operator may not upgrade its definitions: apply those of its version yourself", {
        definition: name,
      });
    }
  }
}

type Step = "none" | "upgrade" | "absent" | "newer";

const messages: Readonly<Record<Step, string | undefined>> = {
  none: undefined,
  upgrade: "definition upgraded",
  absent: "a definition is missing: install it, the operator waits for it",
  newer: "a definition is of a newer operator and stays as it is",
};

/** An operator that was rolled back leaves the newer definition: the objects may use its fields. */
function stepFor(present: KubeObject | undefined, wanted: CustomResourceDefinition): Step {
  if (!present) return "absent";
  const annotations = present.metadata.annotations ?? {};
  const ours = wanted.metadata.annotations;
  if (annotations[crdHashAnnotation] === ours[crdHashAnnotation]) return "none";
  const theirs = annotations[crdVersionAnnotation];
  return theirs !== undefined && isNewer(theirs, ours[crdVersionAnnotation] ?? "") ? "newer" : "upgrade";
}

/** Lists are replaced as a whole, so nothing of the old schema is left. */
async function patch(client: Client, { metadata, spec }: CustomResourceDefinition): Promise<void> {
  const { names, versions } = spec;
  const body = { metadata: { annotations: metadata.annotations }, spec: { names, versions } };
  await client.patch(definitions, { name: metadata.name }, { patch: { type: "merge", body }, fieldManager });
}
