/** The Argo CD examples as repositories, adapted to the test cluster. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments, stringify } from "yaml";

import { filesBelow, root } from "../../docs/pages.ts";
import { smallWorkspace } from "../objects.ts";

const examples = "examples/argocd";

export interface Replacements {
  /** Replaces https://github.com/myorg. */
  readonly gitUrl: string;
  /** Replaces https://api.pulumi.com. */
  readonly cloudUrl: string;
  /** Replaces the namespace pulumi. */
  readonly namespace: string;
  /** Replaces the namespace argocd. */
  readonly argoCd: string;
}

/** The files of a folder below examples/argocd, by their relative path. */
export function exampleFiles(folder: string, replacements: Replacements): Record<string, string> {
  const base = join(examples, folder);
  const paths = filesBelow(join(root, base));
  return Object.fromEntries(
    paths.map((path) => [path.slice(base.length + 1), adapt(readFileSync(join(root, path), "utf8"), replacements)]),
  );
}

function adapt(text: string, { gitUrl, cloudUrl, namespace, argoCd }: Replacements): string {
  const replaced = text
    .replaceAll("https://github.com/myorg", gitUrl)
    .replaceAll("namespace: pulumi\n", `namespace: ${namespace}\n`)
    .replaceAll("namespace: argocd\n", `namespace: ${argoCd}\n`);
  return parseAllDocuments(replaced)
    .map((document) => {
      if (document.get("kind") !== "Stack") return document.toString();
      const stack = document.toJS() as { spec: object };
      const workspaceTemplate = {
        spec: { ...smallWorkspace, podTemplate: { spec: { terminationGracePeriodSeconds: 1 } } },
      };
      const changes = { backend: cloudUrl, workspaceTemplate, retryMaxBackoffDurationSeconds: 2 };
      return stringify({ ...stack, spec: { ...stack.spec, ...changes } });
    })
    .join("---\n");
}
