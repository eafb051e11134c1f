/** `make deploy`: installs the operator with its chart. */
import { join } from "node:path";

import { ensureClients, helmCommand, kubectlCommand } from "./clients.ts";
import { clusterUp } from "./cluster.ts";
import {
  describeGoOperator,
  manifestDeployment,
  operatorNamespace,
  type OperatorDeployment,
} from "./installed-operator.ts";
import { deployableImage } from "./operator-image.ts";
import { repositoryRoot } from "./paths.ts";
import { step } from "./progress.ts";
import { attempt, run } from "./shell.ts";
import { UserError } from "./user-error.ts";

const name = operatorNamespace;

/** `values`: a file of chart values, if the user has one. */
export async function deploy(values: string | undefined): Promise<void> {
  await clusterUp({ dns: true });
  if (process.env["REPLACE"] !== "1") await checkNothingIsReplaced();
  await ensureClients("helm");
  const image = await deployableImage();
  await step(`installing ${image} with the chart`, async (progress) => {
    await removeQuickstart();
    progress.report("waiting for its pod");
    await run(installCommand(image, values));
  });
  console.error("the operator is running; to see its pod:");
  console.error(`  ${kubectlCommand("get", "pods", "-n", name).join(" ")}`);
}

/** Before anything is built or changed: a switch needs to be prepared, because runs of the Go operator cannot be followed. */
async function checkNothingIsReplaced(): Promise<void> {
  const output = await run(kubectlCommand("get", "deployments", "-n", name, "-o", "json"));
  const { items } = JSON.parse(output) as { readonly items: readonly OperatorDeployment[] };
  const goOperator = describeGoOperator(items);
  if (goOperator === undefined) return;
  throw new UserError([
    `${goOperator}, and make deploy would replace it: use another cluster, or follow docs/migration.md and set REPLACE=1 to switch`,
  ]);
}

/** Takes over objects of the quickstart or of an earlier run. */
function installCommand(image: string, values: string | undefined): string[] {
  const chart = join(repositoryRoot, "charts", name);
  const where = ["--create-namespace", `--namespace=${name}`];
  const what = [...imageValues(image), ...(values ? [`--values=${values}`] : [])];
  const how = ["--take-ownership", "--wait", "--timeout=5m"];
  return helmCommand("upgrade", "--install", name, chart, ...where, ...what, ...how);
}

/** Converts `docker.io/pulumi/operator:dev` or `registry:5000/operator@sha256:…` to chart values. */
export function imageValues(image: string): string[] {
  const [path = "", digest] = image.split("@");
  const [, rest = path, tag] = /^(.*):([^:/]+)$/.exec(path) ?? [];
  const [, registry, repository] = /^([^/]*[.:][^/]*|localhost)\/(.+)$/.exec(rest) ?? [];
  const values = {
    registry: registry ?? "docker.io",
    repository: repository ?? rest,
    ...(tag !== undefined && { tag }),
    ...(digest !== undefined && { digest }),
  };
  return Object.entries(values).map(([key, value]) => `--set-string=image.${key}=${value}`);
}

/** The quickstart's Deployment has another name: without this, two operators would run. */
async function removeQuickstart(): Promise<void> {
  await attempt(kubectlCommand("delete", "deployment", manifestDeployment, "-n", name, "--ignore-not-found"));
}
