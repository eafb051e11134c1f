/** The parts of core Kubernetes types that a Workspace names itself. Pods are described by Kubernetes, not here. */
import type { PodSpec } from "kubernetes-types/core/v1";
import { Type, type TSchema } from "typebox";

import { flag, keepUnknown, listOf, mapOf, optional, text, wholeInTemplates } from "../schema/field.ts";
import { PlainMetadata } from "../shared/template-metadata.ts";

const optionalSource = (what: string) => optional(flag(`Whether the ${what} may be missing.`));

const keyIn = (kind: "ConfigMap" | "Secret", description: string) =>
  Type.Object(
    {
      name: optional(text(`The name of the ${kind}.`, { default: "" })),
      key: text(`The key within the ${kind}.`),
      optional: optionalSource(`${kind} or its key`),
    },
    { description, ...wholeInTemplates },
  );

export const secretKey = (description: string) => keyIn("Secret", description);

const EnvVarSource = Type.Object(
  {
    configMapKeyRef: optional(keyIn("ConfigMap", "Takes the value from a ConfigMap.")),
    secretKeyRef: optional(secretKey("Takes the value from a Secret.")),
    fieldRef: optional(
      Type.Object(
        {
          apiVersion: optional(text("The version of the pod schema that the path follows.")),
          fieldPath: text("The path of a field of the pod, such as metadata.name."),
        },
        { description: "Takes the value from a field of the pod." },
      ),
    ),
    resourceFieldRef: optional(
      Type.Object(
        {
          containerName: optional(text("The container whose resources are meant.")),
          divisor: optional(quantity("The unit in which the amount is given.")),
          resource: text("The resource, such as limits.cpu."),
        },
        { description: "Takes the value from a container's requests or limits." },
      ),
    ),
    fileKeyRef: optional(
      Type.Object(
        {
          key: text("The variable within the file."),
          path: text("The path of the file within the volume."),
          volumeName: text("The volume that holds the file."),
          optional: optional(flag("Whether the file or its key may be missing.", { default: false })),
        },
        { description: "Takes the value from a file of variables in a volume." },
      ),
    ),
  },
  { description: "Where the value comes from, instead of a literal value." },
);

export const EnvVar = Type.Object(
  {
    name: text("The name of the variable."),
    value: optional(text("The literal value.")),
    valueFrom: optional(EnvVarSource),
  },
  { description: "One environment variable.", ...wholeInTemplates },
);

const allOf = (kind: "ConfigMap" | "Secret") =>
  Type.Object(
    { name: optional(text(`The name of the ${kind}.`, { default: "" })), optional: optionalSource(kind) },
    { description: `Sets a variable for every key of a ${kind}.` },
  );

export const EnvFrom = Type.Object(
  {
    prefix: optional(text("Text put before each key to make the variable's name.")),
    configMapRef: optional(allOf("ConfigMap")),
    secretRef: optional(allOf("Secret")),
  },
  { description: "One source of many environment variables.", ...wholeInTemplates },
);

function quantity(description: string) {
  return Type.Unsafe<number | string>({
    description,
    "x-kubernetes-int-or-string": true,
    pattern:
      "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
  });
}

export const Resources = Type.Object(
  {
    requests: optional(mapOf(quantity("An amount, such as 500m or 1Gi."), "What is set aside for the container.")),
    limits: optional(mapOf(quantity("An amount, such as 500m or 1Gi."), "What the container may use at most.")),
    claims: optional(
      listOf(
        Type.Object(
          {
            name: text("The name of a claim of the pod."),
            request: optional(text("The request within that claim.")),
          },
          { description: "One claim." },
        ),
        "Claims of the pod that the container uses.",
      ),
    ),
  },
  { description: "What the Pulumi container asks of its node, and may use of it.", ...wholeInTemplates },
);

/** A pod specification whose containers may be left out: it is merged over the generated one. */
type PodSpecOverlay = Partial<PodSpec>;
type Container = NonNullable<PodSpec["initContainers"]>[number];

const podPart = <T>(description: string, shape: TSchema) => Type.Unsafe<T>({ ...shape, description, ...keepUnknown });

export const PodTemplate = Type.Object(
  {
    metadata: optional(PlainMetadata),
    spec: optional(
      podPart<PodSpecOverlay>(
        "A pod specification, merged over the generated one as a strategic merge patch; the Pulumi container is named pulumi.",
        { type: "object" },
      ),
    ),
  },
  { description: "Changes to the workspace's pod.", ...keepUnknown },
);

export const ServiceTemplate = Type.Object(
  { metadata: optional(PlainMetadata) },
  { description: "Changes to the headless Service in front of the workspace's pod.", ...keepUnknown },
);

export const initContainers = listOf(
  podPart<Container>("A container, as in a pod.", { type: "object" }),
  "Containers that run before Pulumi, the same as podTemplate.spec.initContainers; what they append to the file $PULUMI_ENV becomes Pulumi's environment.",
);
