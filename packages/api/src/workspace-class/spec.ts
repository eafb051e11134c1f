/** A WorkspaceClass: what the platform team decides for the workspaces of the namespaces that it selects. */
import { Type, type Static } from "typebox";

import { validatedBy, validationText } from "../schema/cel.ts";
import { atomicList, choice, int32, keyedBy, labels, listOf, mapOf, optional, text, texts } from "../schema/field.ts";
import { overlayOf } from "../schema/overlay.ts";
import { ReportSettings } from "../shared/report.ts";
import { PlainMetadata } from "../shared/template-metadata.ts";
import { initContainers, quantity } from "../workspace/pod.ts";
import { securityProfiles } from "../workspace/pod-facts.ts";
import { WorkspaceSpec } from "../workspace/spec.ts";

const operators = ["In", "NotIn", "Exists", "DoesNotExist"] as const;

const valuesForOperator = {
  rule: "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : !has(self.values) || size(self.values) == 0",
  message: validationText({
    message: "the values do not match the operator",
    remedy: "set values for In and NotIn, and none for Exists and DoesNotExist",
  }),
  fieldPath: ".values",
} as const;

export const LabelSelector = Type.Object(
  {
    matchLabels: optional(labels("Labels that the namespace must have.")),
    matchExpressions: optional(
      listOf(
        Type.Object(
          {
            key: text("The label.", { minLength: 1, maxLength: 317 }),
            operator: choice([...operators], `What is required of the label: ${operators.join(", ")}.`),
            values: optional(texts("The values for In and NotIn.", { ...atomicList, maxItems: 64 })),
          },
          { description: "A requirement for a label of the namespace.", ...validatedBy(valuesForOperator) },
        ),
        "Requirements that the namespace's labels must all meet.",
        { ...atomicList, maxItems: 32 },
      ),
    ),
  },
  {
    description:
      "Selects namespaces by their labels, as everywhere in Kubernetes. An empty selector selects all namespaces.",
  },
);
export type LabelSelector = Static<typeof LabelSelector>;

/** The program and its stacks belong to the Stack. */
const podFields = Type.Omit(WorkspaceSpec, ["git", "flux", "local", "program", "projectInfo", "stacks"]).properties;

const pullPolicies = ["Always", "Never", "IfNotPresent"];

const oneOf = (field: string, values: readonly string[]) => ({
  rule: `!has(self.${field}) || self.${field} in [${values.map((value) => `'${value}'`).join(", ")}]`,
  message: validationText({ message: "is not a supported value", remedy: `use ${values.join(" or ")}` }),
  fieldPath: `.${field}`,
});

export const ClassTemplate = Type.Object(
  {
    metadata: optional(PlainMetadata),
    spec: optional(
      overlayOf(Type.Object({ ...podFields, initContainers: optional(initContainers) }), {
        description: "Fields of the Workspace's spec that apply where the Stack does not set them.",
        ...validatedBy(oneOf("securityProfile", securityProfiles), oneOf("imagePullPolicy", pullPolicies)),
      }),
    ),
  },
  { description: "Defaults for the Workspaces of Stacks. The Stack's workspaceTemplate is merged over them." },
);

const limitedResources = ["cpu", "memory", "ephemeral-storage"];

const Limits = Type.Object(
  {
    resources: optional(
      mapOf(
        quantity("A quantity, such as 2 or 4Gi."),
        `The maximum resources of a workspace pod, as the sum of the limits of its containers: ${limitedResources.join(", ")}. The container pulumi gets what the others leave, unless it has a limit itself.`,
        validatedBy({
          rule: `self.all(name, name in [${limitedResources.map((name) => `'${name}'`).join(", ")}])`,
          message: validationText({
            message: "contains a resource that a class cannot limit",
            remedy: `use ${limitedResources.join(", ")}`,
          }),
        }),
      ),
    ),
  },
  { description: "What Stacks, and Workspaces that users create, cannot exceed." },
);

const PolicyPack = Type.Object(
  {
    name: text("The name of the policy pack in this class.", {
      maxLength: 50,
      pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    }),
    image: optional(
      text(
        "The image with the policy pack and its dependencies. It must contain the command cp. Without it, the path is in the workspace's own image.",
        { minLength: 1 },
      ),
    ),
    path: text("The directory of the policy pack, with PulumiPolicy.yaml.", { pattern: "^/.+" }),
  },
  { description: "A policy pack that every preview and update must satisfy." },
);

export const cacheTools = ["Plugins", "Npm", "Pip", "Go"] as const;
export type CacheTool = (typeof cacheTools)[number];

const Caches = Type.Object(
  {
    tools: optional(
      listOf(
        choice([...cacheTools], `A cache: ${cacheTools.join(", ")}.`),
        "What is cached: Pulumi plugins, and packages of npm, pip and Go. Defaults to all.",
        { "x-kubernetes-list-type": "set", maxItems: cacheTools.length },
      ),
    ),
    size: quantity("The size of the PersistentVolumeClaim in each namespace, such as 10Gi. It is used for new claims."),
    storageClassName: optional(text("The StorageClass of the claim. Defaults to that of the cluster.")),
    accessMode: optional(
      choice(
        ["ReadWriteOnce", "ReadWriteMany"],
        "The access mode of the claim. With ReadWriteOnce, all workspace pods of a namespace run on one node.",
      ),
    ),
  },
  {
    description:
      "Caches that outlive the pods, on a PersistentVolumeClaim in each namespace in which a workspace runs.",
  },
);

const ClassApproval = Type.Object(
  {
    required: choice(
      ["OnDestructiveChanges", "Always"],
      "When updates of all Stacks need an Approval at least: OnDestructiveChanges, if they replace or delete resources; or Always, if they change anything. A Stack can require more, but not less.",
    ),
  },
  { description: "Whether people have to approve changes, whatever the Stacks require." },
);

export const WorkspaceClassSpec = Type.Object(
  {
    namespaceSelector: LabelSelector,
    template: optional(ClassTemplate),
    limits: optional(Limits),
    policyPacks: optional(listOf(PolicyPack, "Mandatory policy packs.", { ...keyedBy("name"), maxItems: 16 })),
    caches: optional(Caches),
    approval: optional(ClassApproval),
    maxConcurrentUpdates: optional(
      int32("The number of Updates that may run at the same time in each selected namespace.", { minimum: 1 }),
    ),
    report: optional(ReportSettings),
  },
  { description: "What applies to the workspaces of the selected namespaces." },
);
export type WorkspaceClassSpec = Static<typeof WorkspaceClassSpec>;
