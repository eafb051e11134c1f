/** The generated files of the chart: everything that must agree with the code, the quickstart manifest or the schemas. */
import { agentPort, imageTag, version } from "@pko/api";
import { Document, isScalar, visit, type Pair } from "yaml";

import { consolePort, metricsPort, probesPort, webhookPort } from "../operator-objects.ts";
import { admissionPolicies, namespaceProtectionPolicy } from "../policies/index.ts";
import {
  approverRules,
  classRules,
  crdRules,
  editRules,
  metricsAuthRules,
  metricsReaderRules,
  ownRules,
  servedRules,
  viewRules,
} from "../rbac.ts";
import { chartArguments, repositoryUrl } from "../published.ts";
import { artifactHubAnnotations } from "./artifact-hub.ts";
import { chartDefaults, type Field } from "./defaults.ts";
import { ChartValues } from "./values.ts";

export const chartFolder = "charts/pulumi-kubernetes-operator";

const values = ChartValues as Field;

export const chartMetadata = {
  apiVersion: "v2",
  name: "pulumi-kubernetes-operator",
  description: "A GitOps operator that deploys Pulumi stacks.",
  type: "application",
  version,
  appVersion: imageTag,
  kubeVersion: ">= 1.31.0-0",
  home: "https://www.pulumi.com",
  sources: [repositoryUrl],
  keywords: ["pulumi", "kubernetes", "operator", "gitops"],
  annotations: artifactHubAnnotations,
};

/** Rules, ports and policies for the templates, which must not define their own. */
export const chartFacts = {
  ports: { agent: agentPort, console: consolePort, metrics: metricsPort, probes: probesPort, webhook: webhookPort },
  rules: {
    served: servedRules,
    own: ownRules,
    crds: crdRules,
    classes: classRules,
    view: viewRules,
    edit: editRules,
    approver: approverRules,
    metricsAuth: metricsAuthRules,
    metricsReader: metricsReaderRules,
  },
  admissionPolicies: admissionPolicies.map(({ suffix, spec }) => ({ suffix, spec })),
  namespaceProtection: { suffix: namespaceProtectionPolicy.suffix, spec: namespaceProtectionPolicy.spec },
};

export const valuesSchema = (): object => ({
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "Values of the chart pulumi-kubernetes-operator",
  ...(JSON.parse(JSON.stringify(ChartValues)) as object),
});

/** The defaults, each with its description as a comment. */
export function valuesYaml(): string {
  const document = new Document(chartDefaults);
  visit(document, {
    Pair(_, pair, path) {
      const keys = [...path.flatMap((step) => keyOf(step)), ...keyOf(pair)];
      const field = fieldAt(keys);
      if (field?.description && isScalar(pair.key)) pair.key.commentBefore = ` ${field.description}`;
      if (keys.length === 1 && isScalar(pair.key)) pair.key.spaceBefore = true;
    },
  });
  return document.toString({ lineWidth: 0 });
}

const keyOf = (step: unknown): string[] => {
  const { key } = step as Partial<Pair>;
  return isScalar(key) ? [String(key.value)] : [];
};

function fieldAt(keys: readonly string[]): Field | undefined {
  return keys.reduce<Field | undefined>((field, key) => field?.properties?.[key], values);
}

export function chartReadme(): string {
  return [
    "# pulumi-kubernetes-operator",
    "A GitOps operator that deploys Pulumi stacks with the Kubernetes objects Stack, Program, Workspace and Update.",
    `\`\`\`sh\nhelm install --create-namespace -n pulumi-kubernetes-operator pulumi-kubernetes-operator \\\n  ${chartArguments.join(" ")}\n\`\`\``,
    `Until ${imageTag} is published, [install from a clone](../../docs/getting-started.md#install-from-a-clone).`,
    "The CRDs are in `crds/`. Helm installs them with a new release, and never adds, upgrades or deletes any after that. The operator creates missing CRDs and upgrades the others when it starts (`crds.upgrade`). Delete your Stacks before `helm uninstall`: only the operator can remove their finalizers. The CRDs, your objects, and the Secret and Lease that the operator created remain; see [Uninstall](../../docs/operations.md#uninstall).",
    "| value | default | meaning |\n| --- | --- | --- |\n" + [...rows("", values)].join("\n"),
  ].join("\n\n");
}

function* rows(prefix: string, field: Field): Iterable<string> {
  for (const [name, child] of Object.entries(field.properties ?? {})) {
    if (child.default === undefined && Object.keys(child.properties ?? {}).length > 0) {
      yield* rows(`${prefix}${name}.`, child);
    } else if (child.default !== undefined) {
      yield `| \`${prefix}${name}\` | \`${JSON.stringify(child.default)}\` | ${child.description ?? ""} |`;
    }
  }
}
