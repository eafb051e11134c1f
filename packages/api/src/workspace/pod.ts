/** The parts of core Kubernetes types that a Workspace's schema describes. Pod specs are left to Kubernetes. */
import type { PodSpec } from "kubernetes-types/core/v1";
import { Type, type TSchema } from "typebox";

import { flag, keepUnknown, listOf, mapOf, optional, text, wholeInTemplates } from "../schema/field.ts";
import { PlainMetadata } from "../shared/template-metadata.ts";

const optionalSource = (what: string) => optional(flag(`Whether the ${what} may be missing.`));

const keyIn = (kind: "ConfigMap" | "Secret", description: string) =>
  Type.Object(
    {
      name: optional(text(`The name of the ${kind}.`, { default: "" })),
      key: text(`The key in the ${kind}.`),
      optional: optionalSource(`${kind} or its key`),
    },
    { description, ...wholeInTemplates },
  );

export const secretKey = (description: string) => keyIn("Secret", description);

const EnvVarSource = Type.Object(
  {
    configMapKeyRef: optional(keyIn("ConfigMap", "Reads the value from a ConfigMap.")),
    secretKeyRef: optional(secretKey("Reads the value from a Secret.")),
    fieldRef: optional(
      Type.Object(
        {
          apiVersion: optional(text("The API version of the pod in which the path is valid.")),
          fieldPath: text("The path of a field of the pod, such as metadata.name."),
        },
        { description: "Reads the value from a field of the pod." },
      ),
    ),
    resourceFieldRef: optional(
      Type.Object(
        {
          containerName: optional(text("The name of the container.")),
          divisor: optional(quantity("The unit of the value, such as 1Mi.")),
          resource: text("The resource, such as limits.cpu."),
        },
        { description: "Reads the value from a container's requests or limits." },
      ),
    ),
    fileKeyRef: optional(
      Type.Object(
        {
          key: text("The name of the variable in the file."),
          path: text("The path of the file in the volume."),
          volumeName: text("The name of the volume with the file."),
          optional: optional(flag("Whether the file or its key may be missing.", { default: false })),
        },
        { description: "Reads the value from an environment file in a volume." },
      ),
    ),
  },
  { description: "The source of the value, instead of a literal value." },
);

export const EnvVar = Type.Object(
  {
    name: text("The name of the variable."),
    value: optional(text("The literal value.")),
    valueFrom: optional(EnvVarSource),
  },
  { description: "An environment variable.", ...wholeInTemplates },
);

const allOf = (kind: "ConfigMap" | "Secret") =>
  Type.Object(
    { name: optional(text(`The name of the ${kind}.`, { default: "" })), optional: optionalSource(kind) },
    { description: `Sets a variable for every key of a ${kind}.` },
  );

export const EnvFrom = Type.Object(
  {
    prefix: optional(text("A prefix for the names of the variables.")),
    configMapRef: optional(allOf("ConfigMap")),
    secretRef: optional(allOf("Secret")),
  },
  { description: "A ConfigMap or Secret whose keys become environment variables.", ...wholeInTemplates },
);

export function quantity(description: string) {
  return Type.Unsafe<number | string>({
    description,
    "x-kubernetes-int-or-string": true,
    pattern:
      "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
  });
}

export const Resources = Type.Object(
  {
    requests: optional(
      mapOf(quantity("A quantity, such as 500m or 1Gi."), "The resources that are reserved for the container."),
    ),
    limits: optional(
      mapOf(quantity("A quantity, such as 500m or 1Gi."), "The maximum resources that the container may use."),
    ),
    claims: optional(
      listOf(
        Type.Object(
          {
            name: text("The name of a resource claim of the pod."),
            request: optional(text("The request in the claim.")),
          },
          { description: "A resource claim." },
        ),
        "The pod's resource claims that the container uses.",
      ),
    ),
  },
  { description: "The resource requests and limits of the Pulumi container.", ...wholeInTemplates },
);

/** A pod spec in which containers are optional: it is merged over the generated one. */
type PodSpecOverlay = Partial<PodSpec>;
type Container = NonNullable<PodSpec["initContainers"]>[number];

const podPart = <T>(description: string, shape: TSchema) => Type.Unsafe<T>({ ...shape, description, ...keepUnknown });

export const PodTemplate = Type.Object(
  {
    metadata: optional(PlainMetadata),
    spec: optional(
      podPart<PodSpecOverlay>(
        "A pod spec to merge over the generated one, as a strategic merge patch. The Pulumi container is named pulumi.",
        { type: "object" },
      ),
    ),
  },
  { description: "A template to merge over the generated workspace pod.", ...keepUnknown },
);

export const ServiceTemplate = Type.Object(
  { metadata: optional(PlainMetadata) },
  { description: "A template to merge over the generated headless Service of the workspace pod.", ...keepUnknown },
);

export const initContainers = listOf(
  podPart<Container>("A container, as in a pod spec.", { type: "object" }),
  "Init containers that run before Pulumi, like podTemplate.spec.initContainers. Variables that they append to the file $PULUMI_ENV are added to Pulumi's environment.",
);
