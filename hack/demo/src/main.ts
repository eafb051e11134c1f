/** From nothing to a deployed Stack, then a change to it, told step by step. */
import { clusterKubeconfig, clusterUp, givenKubeconfig, step, UserError } from "@pko/cluster";
import { connect, kubeconfigCredentials, type Client } from "@pko/kube";
import { stacks } from "@pko/operator";

import { missingFor, readExample, type Example } from "./example.ts";
import { followStacks, type StackName } from "./follow.ts";
import { installOperator } from "./install.ts";
import { kubectl, kubectlCommand } from "./kubectl.ts";
import { outputLines, seconds } from "./narrate.ts";

async function main(example: Example): Promise<void> {
  heading("A Kubernetes cluster on this machine, and the operator in it");
  // The examples find everything by address.
  await clusterUp({ dns: false });
  await installOperator();
  const client = connect(await kubeconfigCredentials(clusterKubeconfig()));
  const names = example.stacks.map(nameOf);
  await clear(client, example, names);

  heading(`The example: kubectl apply -f ${example.folder}`);
  await timed(client, names, async () => {
    await kubectl(["apply", "-f", example.folder]);
  });
  await showOutputs(client, names);

  const last = names.at(-1);
  if (last === undefined) return;
  heading(`A change, in the workspace that is warm now: ${changeCommand(example, last).join(" ")}`);
  await timed(client, [last], async () => {
    await kubectl(changeCommand(example, last).slice(1));
  });
  await showOutputs(client, [last]);
  goOn(example, last);
}

/** What an earlier demo left goes the way a user's goes: the Stack is deleted, so its resources are destroyed. */
async function clear(client: Client, example: Example, names: readonly StackName[]): Promise<void> {
  const present = new Set(
    (await client.list(stacks)).items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`),
  );
  const left = names.filter(({ namespace, name }) => present.has(`${namespace}/${name}`));
  if (left.length === 0) return;
  await step("deleting what an earlier demo left", async (progress) => {
    for (const { name, namespace } of left.toReversed()) {
      progress.say(`destroying ${name}`);
      await kubectl(["delete", "stack", name, "--namespace", namespace, "--timeout=120s"]);
    }
    await kubectl(["delete", "-f", example.folder, "--ignore-not-found", "--timeout=60s"]);
  });
}

async function timed(client: Client, names: readonly StackName[], begin: () => Promise<void>): Promise<void> {
  const since = new Date();
  await begin();
  await followStacks(client, names, since);
  console.log(`\n✓ done after ${seconds(Date.now() - since.getTime())}`);
}

/** Its own, where it has one; otherwise an update by hand, which every Stack takes. */
function changeCommand({ change }: Example, { name, namespace }: StackName): string[] {
  const where = namespace === "default" ? [] : ["--namespace", namespace];
  if (change !== undefined) {
    return ["kubectl", "patch", "stack", name, ...where, "--type=merge", `--patch-file=${change}`];
  }
  const request = `pulumi.com/reconciliation-request=${Date.now()}`;
  return ["kubectl", "annotate", "stack", name, ...where, "--overwrite", request];
}

async function showOutputs(client: Client, names: readonly StackName[]): Promise<void> {
  for (const name of names) {
    const { status } = await client.get(stacks, name);
    console.log(`\nOutputs of ${name.name}:`);
    for (const line of outputLines(status?.outputs ?? {})) console.log(`  ${line}`);
  }
}

function goOn({ folder }: Example, { name, namespace }: StackName): void {
  heading("To go on");
  console.log(`  alias kubectl="${kubectlCommand().join(" ")}"`);
  for (const command of [
    `kubectl get stacks,workspaces,updates --namespace ${namespace}`,
    `kubectl describe stack ${name} --namespace ${namespace}`,
    `kubectl logs ${name}-workspace-0 --namespace ${namespace}`,
    `kubectl delete stack ${name} --namespace ${namespace}   # destroys its resources, then goes`,
    "make demo EXAMPLE=structured-config                   # another one; they are in examples/",
    ...(givenKubeconfig === undefined
      ? ["make cluster-down                                     # ends the cluster"]
      : []),
  ]) {
    console.log(`  ${command}`);
  }
  console.log(`\n  The manifests are in ${folder}; docs/getting-started.md tells what they mean.`);
}

function heading(text: string): void {
  console.log(`\n── ${text}\n`);
}

function nameOf({ metadata }: Example["stacks"][number]): StackName {
  return { name: metadata.name ?? "", namespace: metadata.namespace ?? "default" };
}

try {
  const example = readExample(process.env["EXAMPLE"] || "program");
  const missing = givenKubeconfig === undefined ? missingFor(example) : undefined;
  if (missing !== undefined) throw new UserError([missing]);
  await main(example);
} catch (error) {
  const lines = error instanceof UserError ? error.problems : [error instanceof Error ? error.message : String(error)];
  for (const line of lines) console.error(`error: ${line}`);
  process.exitCode = 1;
}
