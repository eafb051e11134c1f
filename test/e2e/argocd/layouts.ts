/** The examples as repositories: what is in them, with only what must differ here. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments, stringify } from "yaml";

import { filesBelow, root } from "../../docs/pages.ts";

const examples = "examples/argocd";

export interface Surroundings {
  /** Instead of https://github.com/myorg. */
  readonly gitUrl: string;
  /** Instead of https://api.pulumi.com. */
  readonly cloudUrl: string;
  /** Instead of the namespace pulumi. */
  readonly namespace: string;
  /** Instead of the namespace argocd. */
  readonly argoCd: string;
}

/** The files of a folder below examples/argocd, by their path in it. */
export function filesOf(folder: string, surroundings: Surroundings): Record<string, string> {
  const base = join(examples, folder);
  const paths = filesBelow(join(root, base));
  return Object.fromEntries(
    paths.map((path) => [path.slice(base.length + 1), adapted(readFileSync(join(root, path), "utf8"), surroundings)]),
  );
}

function adapted(text: string, { gitUrl, cloudUrl, namespace, argoCd }: Surroundings): string {
  const placed = text
    .replaceAll("https://github.com/myorg", gitUrl)
    .replaceAll("namespace: pulumi\n", `namespace: ${namespace}\n`)
    .replaceAll("namespace: argocd\n", `namespace: ${argoCd}\n`);
  return parseAllDocuments(placed)
    .map((document) => {
      if (document.get("kind") !== "Stack") return document.toString();
      const stack = document.toJS() as { spec: object };
      const workspaceTemplate = { spec: { podTemplate: { spec: { terminationGracePeriodSeconds: 1 } } } };
      const here = { backend: cloudUrl, workspaceTemplate, retryMaxBackoffDurationSeconds: 2 };
      return stringify({ ...stack, spec: { ...stack.spec, ...here } });
    })
    .join("---\n");
}
