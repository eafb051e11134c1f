/** The examples store their state on volumes, which a cluster of the user's own may not provide. */
import { attempt, kubectlCommand, UserError } from "@pko/cluster";

import { needsDefaultStorage, type Example } from "./example.ts";

/** What is read of a StorageClass. */
export interface StorageClass {
  readonly metadata: { readonly name?: string; readonly annotations?: Readonly<Record<string, string>> };
}

const defaultAnnotation = "storageclass.kubernetes.io/is-default-class";
const defaultAnnotations = [defaultAnnotation, "storageclass.beta.kubernetes.io/is-default-class"];

/** Without it, the demo would wait until its timeout for a pod whose volume is never provisioned. */
export async function checkStorage(examples: readonly Example[]): Promise<void> {
  const example = examples.find(needsDefaultStorage);
  if (example === undefined) return;
  const { code, stdout } = await attempt(kubectlCommand("get", "storageclasses", "--output=json"));
  // Not every user may list them.
  if (code !== 0) return;
  const { items } = JSON.parse(stdout) as { readonly items: readonly StorageClass[] };
  const problem = storageProblem(items, example);
  if (problem !== undefined) throw new UserError([problem]);
}

export function storageProblem(classes: readonly StorageClass[], { name }: Pick<Example, "name">): string | undefined {
  if (classes.some(isDefault)) return undefined;
  const advice =
    classes.length === 0
      ? "install a provisioner with a StorageClass, and make it the default"
      : `make one of its classes (${classes.map(({ metadata }) => metadata.name).join(", ")}) the default, with the annotation ${defaultAnnotation}: "true"`;
  return `the example ${name} stores its state on a volume, but the cluster has no default StorageClass: ${advice}, or use another cluster`;
}

const isDefault = ({ metadata: { annotations = {} } }: StorageClass): boolean =>
  defaultAnnotations.some((annotation) => annotations[annotation] === "true");
