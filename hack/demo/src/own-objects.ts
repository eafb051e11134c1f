/** The demo labels its objects. Those of the user that have the same names are neither changed nor deleted. */
import type { Stack } from "@pko/api";
import { UserError } from "@pko/cluster";
import { isNotFound, type Client } from "@pko/kube";
import { stacks } from "@pko/operator";

import type { StackName } from "./follow.ts";
import { kubectl } from "./kubectl.ts";

/** Also in git-server/pod.yaml. */
const [label, value] = ["app.kubernetes.io/managed-by", "pulumi-operator-demo"] as const;
export const demoLabels = { [label]: value };

const paths = [".kind", ".metadata.name", ".metadata.namespace", `.metadata.labels.${label.replaceAll(".", "\\.")}`];

/** `selections` are arguments of `kubectl get`, for everything that the demo creates. */
export async function checkObjects(selections: readonly (readonly string[])[]): Promise<void> {
  const output = `--output=custom-columns=${paths.map((path, index) => `${index}:${path}`).join(",")}`;
  const options = ["--ignore-not-found", "--no-headers", output];
  const rows = await Promise.all(selections.map(async (each) => await kubectl(["get", ...each, ...options])));
  const problems = foreignObjects(rows.join("\n"));
  if (problems.length > 0) throw new UserError(problems);
}

/** One problem for each row whose last column is not the label of the demo. */
export function foreignObjects(rows: string): string[] {
  return rows
    .split("\n")
    .map((row) => row.trim().split(/\s+/))
    .filter((columns) => columns.length === 4 && columns[3] !== value)
    .map(
      ([kind, name, namespace]) =>
        `${kind} ${name} exists in namespace ${namespace}, and no demo has created it, or it was applied again since: delete it, or select another namespace in your kubeconfig`,
    );
}

/** Applies the manifests of an example with the label, so that an interrupted demo leaves no object without it. */
export async function applyExample(folder: string): Promise<void> {
  const labelled = await kubectl(["label", "--local", "-f", folder, `${label}=${value}`, "--output=json"]);
  await kubectl(["apply", "-f", "-"], labelled);
}

/**
 * Restores the spec of the manifest: a Stack that an interrupted tour has left may need an approval, a Secret that does
 * not exist, or the Git server, and could not be destroyed.
 */
export async function restoreStack(client: Pick<Client, "patch">, name: StackName, { spec }: Stack): Promise<void> {
  try {
    await client.patch(stacks, name, {
      patch: { type: "json", body: [{ op: "replace", path: "/spec", value: spec }] },
    });
  } catch (error) {
    // The deletion that an interrupted demo has started may have ended.
    if (!isNotFound(error)) throw error;
  }
}
