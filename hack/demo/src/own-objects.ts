/** The demo labels its objects. Those of the user that have the same names are neither changed nor deleted. */
import { UserError } from "@pko/cluster";

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
        `${kind} ${name} exists in namespace ${namespace}, and no demo has created it: delete it, or select another namespace in your kubeconfig`,
    );
}

/** Applies the manifests of an example as they are. */
export async function applyExample(folder: string): Promise<void> {
  await kubectl(["apply", "-f", folder]);
  await kubectl(["label", "-f", folder, "--overwrite", `${label}=${value}`]);
}
