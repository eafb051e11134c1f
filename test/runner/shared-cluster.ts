/** The cluster on which end-to-end tests run: a new local one, or the user's own, which is neither started nor stopped. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";

import {
  buildOwnCli,
  deployableImage,
  describeOperator,
  givenKubeconfig,
  kubectlCommand,
  installedOperators,
  readDeployments,
  run,
} from "@pko/cluster";
import { parse } from "yaml";

import { repositoryRoot } from "./suites.ts";

const cluster = [process.execPath, join(repositoryRoot, "hack/cluster/src/main.ts")];

/** Runs a command of `hack/cluster` and returns whether it succeeded. */
export async function runCluster(...args: readonly string[]): Promise<boolean> {
  const command = [...cluster, ...args];
  const child = Bun.spawn(command, { cwd: repositoryRoot, stdin: "ignore", stdout: "inherit", stderr: "inherit" });
  return (await child.exited) === 0;
}

interface ClusterNeeds {
  /** Whether several files may run kubectl-pulumi. A single file builds it if it needs it. */
  readonly cli: boolean;
}

/** Returns the variables for tests, or what is wrong. The local cluster is a new one, so that leftovers do not matter. */
export async function startCluster({ cli }: ClusterNeeds): Promise<Record<string, string> | string> {
  const isUp = (await runCluster("down")) && (await runCluster("up"));
  if (!isUp) return "the cluster did not start; see the output above";
  const problem = givenKubeconfig === undefined ? undefined : await givenClusterProblem(givenKubeconfig);
  if (problem !== undefined) return problem;
  try {
    // Once, because parallel processes would overwrite each other's executables.
    const image = await deployableImage();
    return { TEST_OPERATOR_IMAGE: image, ...(cli && { TEST_CLI: await buildOwnCli() }) };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

export async function stopCluster(): Promise<void> {
  await runCluster("down");
}

/** Why tests cannot use the cluster of the user; undefined if they can. */
async function givenClusterProblem(kubeconfig: string): Promise<string | undefined> {
  return (
    credentialsProblem(await readFile(kubeconfig, "utf8")) ??
    (await operatorProblem()) ??
    storageProblem(await readStorageClasses())
  );
}

interface Kubeconfig {
  readonly "current-context"?: string;
  readonly contexts?: readonly { readonly name: string; readonly context: { readonly user: string } }[] | null;
  readonly users?: readonly { readonly name: string; readonly user: { readonly exec?: object } }[] | null;
}

/** Tests start kubectl without the environment that a program for credentials would need. */
export function credentialsProblem(kubeconfig: string): string | undefined {
  const { "current-context": current, contexts, users } = parse(kubeconfig) as Kubeconfig;
  const name = contexts?.find((each) => each.name === current)?.context.user;
  const { exec } = users?.find((each) => each.name === name)?.user ?? {};
  if (exec === undefined) return undefined;
  return `the kubeconfig of CLUSTER_KUBECONFIG gets the credentials of ${name} from another program (exec), which tests cannot run: use one with the token of a service account`;
}

interface StorageClass {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
}

async function readStorageClasses(): Promise<readonly StorageClass[]> {
  const text = await run(kubectlCommand("get", "storageclasses", "--output=json"));
  return (JSON.parse(text) as { readonly items: readonly StorageClass[] }).items;
}

/** Whether several pods can mount its volumes shows only when they do. */
export function storageProblem(classes: readonly StorageClass[]): string | undefined {
  const isDefault = ({ metadata }: StorageClass): boolean =>
    metadata.annotations?.["storageclass.kubernetes.io/is-default-class"] === "true";
  if (classes.some(isDefault)) return undefined;
  return "the cluster of CLUSTER_KUBECONFIG has no default StorageClass, and every test needs a volume: create one whose volumes several pods can mount (ReadWriteMany)";
}

/** An operator that would interfere. */
export async function operatorProblem(read: typeof readDeployments = readDeployments): Promise<string | undefined> {
  try {
    const [operator] = installedOperators(await read());
    return operator && `${describeOperator(operator)}, and would reconcile the Stacks of tests: uninstall it`;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return `whether the cluster of CLUSTER_KUBECONFIG has an operator is unknown: ${reason}`;
  }
}
