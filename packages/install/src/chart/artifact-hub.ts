/** What Artifact Hub shows about the chart (https://artifacthub.io/docs/topics/annotations/helm). */
import { imageTag, kindDefinitions, operatorImage } from "@pko/api";
import { stringify } from "yaml";

import { repositoryUrl } from "../published.ts";

const crds = kindDefinitions.map(({ kind, group, plural, versions, description }) => ({
  kind,
  version: versions[0],
  name: `${plural}.${group}`,
  displayName: kind,
  description,
}));

const stack = {
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  metadata: { name: "website" },
  spec: {
    serviceAccountName: "pulumi",
    stack: "my-org/website/dev",
    projectRepo: "https://github.com/my-org/website",
    branch: "main",
    destroyOnFinalize: true,
  },
};

const links = [
  { name: "documentation", url: `${repositoryUrl}/tree/${imageTag}/docs` },
  { name: "support", url: `${repositoryUrl}/issues` },
];

const screenshots = [
  ["The console: all Stacks, those that fail first, each with its cause", "console-fleet.png"],
  ["A plan that waits for an approval", "console-approval.png"],
].map(([title, file]) => ({
  title,
  url: `https://raw.githubusercontent.com/pulumi/pulumi-kubernetes-operator/${imageTag}/docs/images/${file}`,
}));

export const artifactHubAnnotations: Readonly<Record<string, string>> = {
  "artifacthub.io/category": "integration-delivery",
  "artifacthub.io/crds": stringify(crds),
  "artifacthub.io/crdsExamples": stringify([stack]),
  "artifacthub.io/images": stringify([
    { name: "pulumi-kubernetes-operator", image: operatorImage, platforms: ["linux/amd64", "linux/arm64"] },
  ]),
  "artifacthub.io/license": "Apache-2.0",
  "artifacthub.io/links": stringify(links),
  "artifacthub.io/operator": "true",
  "artifacthub.io/operatorCapabilities": "Deep Insights",
  "artifacthub.io/screenshots": stringify(screenshots),
};
