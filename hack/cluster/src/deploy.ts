/** `make deploy`: installs the operator with its chart. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { ensureClients, helmCommand, isUsersOwn, kubectlCommand } from "./clients.ts";
import { clusterUp } from "./cluster.ts";
import {
  chartDeployment,
  describeOperator,
  installedOperators,
  isScaledToZero,
  manifestDeployment,
  operatorNamespace,
  readDeployments,
  servedNamespaces,
  type InstalledOperator,
  type OperatorDeployment,
} from "./installed-operator.ts";
import { deployableImage } from "./operator-image.ts";
import { repositoryRoot } from "./paths.ts";
import { step } from "./progress.ts";
import { run } from "./shell.ts";
import { UserError } from "./user-error.ts";

const name = operatorNamespace;

/** `values`: a file of chart values, if the user has one. */
export async function deploy(values: string | undefined): Promise<void> {
  await clusterUp({ dns: true });
  await checkOperators(values);
  await ensureClients("helm");
  await checkHelm();
  const image = await deployableImage();
  await step(`installing ${image} with the chart`, async (progress) => {
    progress.report("waiting for its pod");
    await run(installCommand(image, values));
    await removeQuickstart();
  });
  console.error("the operator is running; to see its pod:");
  console.error(`  ${kubectlCommand("get", "pods", "-n", name).join(" ")}`);
}

/** Before anything is built or changed: a switch needs to be prepared, because runs of the Go operator cannot be followed. */
async function checkOperators(values: string | undefined): Promise<void> {
  const request = { isReplacing: process.env["REPLACE"] === "1", namespaces: await watchedNamespaces(values) };
  const obstacle = obstacleToDeploy(await readDeployments(), request);
  if (obstacle !== undefined) throw new UserError([obstacle]);
}

interface DeployRequest {
  /** Whether the user wants to replace the Go operator. */
  readonly isReplacing: boolean;
  /** Those that the new operator serves; empty for all. */
  readonly namespaces: readonly string[];
}

/** Explains why the chart must not be installed; undefined if it can be. */
export function obstacleToDeploy(
  deployments: readonly OperatorDeployment[],
  request: DeployRequest,
): string | undefined {
  return installedOperators(deployments)
    .map((operator) => (isInPlace(operator) ? replaced(operator, request) : secondOperator(operator, request)))
    .find((obstacle) => obstacle !== undefined);
}

/** Whether the release, or the deletion of the quickstart's Deployment, replaces it. */
function isInPlace({ name: deployment, namespace, deployment: { metadata } }: InstalledOperator): boolean {
  const isOfRelease = metadata.annotations?.["meta.helm.sh/release-name"] === name;
  return namespace === operatorNamespace && (isOfRelease || [manifestDeployment, chartDeployment].includes(deployment));
}

function replaced(operator: InstalledOperator, { isReplacing }: DeployRequest): string | undefined {
  if (!operator.isGo || isReplacing) return undefined;
  return `${describeOperator(operator)}, and make deploy would replace it: use another cluster, or follow docs/migration.md and set REPLACE=1 to switch`;
}

function secondOperator(operator: InstalledOperator, { isReplacing, namespaces }: DeployRequest): string | undefined {
  if (isReplacing && isScaledToZero(operator)) return undefined;
  if (!operator.isGo && !overlap(servedNamespaces(operator), namespaces)) return undefined;
  const advice = operator.isGo
    ? "follow docs/migration.md to switch it where it is, or scale it to zero and set REPLACE=1"
    : "upgrade it where it is, or uninstall it";
  return `${describeOperator(operator)}, and make deploy would install a second one in namespace ${operatorNamespace}, so that both change the same Stacks: use another cluster, or ${advice}`;
}

/** An empty list means all namespaces. */
function overlap(some: readonly string[], others: readonly string[]): boolean {
  return some.length === 0 || others.length === 0 || some.some((namespace) => others.includes(namespace));
}

/** Helm reports a file that does not exist or is not valid. */
async function watchedNamespaces(values: string | undefined): Promise<readonly string[]> {
  try {
    const text = values ? await readFile(values, "utf8") : "";
    const { watchNamespaces } = (Bun.YAML.parse(text) ?? {}) as { readonly watchNamespaces?: readonly string[] };
    return watchNamespaces ?? [];
  } catch {
    return [];
  }
}

/** The one that is built here is new enough. */
async function checkHelm(): Promise<void> {
  if (!isUsersOwn("helm")) return;
  const version = (await run(helmCommand("version", "--template={{.Version}}"))).trim();
  if (isHelmTooOld(version)) {
    throw new UserError([
      `Helm ${version} is too old to take over objects that were installed without it (--take-ownership): install Helm 3.17 or newer`,
    ]);
  }
}

/** A version that cannot be parsed is that of a build of someone's own. */
export function isHelmTooOld(version: string): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  return major !== undefined && (Number(major) < 3 || (major === "3" && Number(minor) < 17));
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

/**
 * The quickstart's Deployment has another name: without this, two operators would run. It is deleted last, so that there still
 * is an operator if Helm rejects the values. Until then only one of the two leads, because both use the Lease of this namespace.
 */
async function removeQuickstart(): Promise<void> {
  await run(kubectlCommand("delete", "deployment", manifestDeployment, "-n", name, "--ignore-not-found"));
}
