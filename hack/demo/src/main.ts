/** Deploys an example Stack and then updates it, showing each step; without EXAMPLE, a tour follows. */
import { reconcileRequestAnnotation } from "@pko/api";
import {
  clusterKubeconfig,
  clusterUp,
  givenKubeconfig,
  givenVariables,
  prepareOperatorImage,
  step,
  together,
  userShellSetup,
  UserError,
} from "@pko/cluster";
import { connect, kubeconfigCredentials, type Client } from "@pko/kube";
import { stacks } from "@pko/operator";

import { obstacleOf, readExample, stackName, stackNames, type Example } from "./example.ts";
import { followStacks, type StackName } from "./follow.ts";
import { gitRepository, gitServerObjects, startGitServer } from "./git-server.ts";
import { installOperator, manifest } from "./install.ts";
import { kubectl } from "./kubectl.ts";
import { nextSteps, type Demonstrated } from "./next-steps.ts";
import { applyExample, checkObjects, restoreStack } from "./own-objects.ts";
import { heading, outputLines, seconds } from "./progress-lines.ts";
import { checkStorage } from "./storage.ts";
import { preparePlugin, tour } from "./tour.ts";

async function main(example: Example, background: readonly Example[]): Promise<void> {
  const what =
    givenKubeconfig === undefined ? "Starting a local Kubernetes cluster and the operator" : "Installing the operator";
  console.log(heading(what));
  // The examples need no DNS.
  await together(new AbortController(), [clusterUp({ dns: false }), prepareOperatorImage()]);
  const credentials = await kubeconfigCredentials(clusterKubeconfig());
  const client = connect(credentials);
  const namespace = credentials.namespace ?? "default";
  const names = stackNames(example, namespace);
  const all = [example, ...background];
  if (givenKubeconfig !== undefined) await checkStorage(all);
  const isOperatorOfDemo = await installOperator(namespace);
  await checkObjects([...all.map(({ folder }) => ["-f", folder]), gitServerObjects]);
  for (const one of all) await clear(client, one, namespace);

  console.log(heading(`Deploying the example: kubectl apply -f ${example.folder}`));
  await timed(client, names, async () => {
    await applyExample(example.folder);
  });
  const prepared = background.length > 0 ? prepareTour(background) : undefined;
  // The tour reports the failure.
  prepared?.catch(() => undefined);
  await showOutputs(client, names);

  const last = names.at(-1);
  if (last === undefined) return;
  const { title, command } = secondUpdate(example, last);
  console.log(heading(`${title}, in the running workspace: ${command.join(" ")}`));
  await timed(client, [last], async () => {
    await kubectl(command.slice(1));
  });
  await showOutputs(client, [last]);
  await prepared;
  if (prepared) await tour(console.log, gitRepository());
  await showNextSteps({
    stacks: names.map(({ name }) => name),
    namespace: last.namespace,
    folder: example.folder,
    variables: givenVariables(),
    manifest: isOperatorOfDemo ? manifest : undefined,
  });
}

/** What it starts is ready when the tour needs it. */
async function prepareTour(background: readonly Example[]): Promise<void> {
  await Promise.all([
    startGitServer(),
    preparePlugin(),
    ...background.map(async ({ folder }) => await applyExample(folder)),
  ]);
}

/** Deletes the Stacks of an earlier demo like a user would, which destroys their resources. */
async function clear(client: Client, example: Example, namespace: string): Promise<void> {
  const present = new Set(
    (await client.list(stacks)).items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`),
  );
  const left = example.stacks
    .map((stack) => ({ stack, ...stackName(stack, namespace) }))
    .filter((one) => present.has(`${one.namespace}/${one.name}`));
  if (left.length === 0) return;
  await step("deleting the Stacks of an earlier demo", async (progress) => {
    for (const { stack, ...name } of left.toReversed()) {
      progress.report(`destroying ${name.name}`);
      await restoreStack(client, name, stack);
      const options = ["--namespace", name.namespace, "--ignore-not-found", "--timeout=120s"];
      await kubectl(["delete", "stack", name.name, ...options]);
    }
    await kubectl(["delete", "-f", example.folder, "--ignore-not-found", "--timeout=60s"]);
  });
}

async function timed(client: Client, names: readonly StackName[], start: () => Promise<void>): Promise<void> {
  const since = new Date();
  await start();
  await followStacks(client, names, since);
  console.log(`\n✓ done after ${seconds(Date.now() - since.getTime())}`);
}

interface SecondUpdate {
  readonly title: string;
  readonly command: readonly string[];
}

/** The example's change, or a requested update, which works for every Stack. */
function secondUpdate({ change }: Example, { name, namespace }: StackName): SecondUpdate {
  const stack = ["stack", name, ...(namespace === "default" ? [] : ["--namespace", namespace])];
  if (change !== undefined) {
    const command = ["kubectl", "patch", ...stack, "--type=merge", `--patch-file=${change}`];
    return { title: "Changing it", command };
  }
  const request = `${reconcileRequestAnnotation}=${Date.now()}`;
  return { title: "Requesting another update", command: ["kubectl", "annotate", ...stack, "--overwrite", request] };
}

async function showOutputs(client: Client, names: readonly StackName[]): Promise<void> {
  for (const name of names) {
    const { status } = await client.get(stacks, name);
    console.log(`\nOutputs of ${name.name}:`);
    for (const line of outputLines(status?.outputs ?? {})) console.log(`  ${line}`);
  }
}

async function showNextSteps(demo: Demonstrated): Promise<void> {
  console.log(heading("Next steps"));
  for (const command of [await userShellSetup(), ...nextSteps(demo)]) console.log(`  ${command}`);
  console.log(`\n  The manifests are in ${demo.folder}; docs/getting-started.md explains them.`);
}

try {
  const chosen = process.env["EXAMPLE"];
  const example = readExample(chosen || "program");
  const obstacle = obstacleOf(example, givenKubeconfig === undefined);
  if (obstacle !== undefined) throw new UserError([obstacle]);
  await main(example, chosen ? [] : [readExample("drift")]);
} catch (error) {
  const lines = error instanceof UserError ? error.problems : [error instanceof Error ? error.message : String(error)];
  for (const line of lines) console.error(`error: ${line}`);
  if (givenKubeconfig === undefined) console.error("To use a cluster of your own instead: make demo CONTEXT=name");
  process.exitCode = 1;
}
