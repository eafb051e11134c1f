/** The operators that are already on a cluster, this one or the Go operator. They are recognized by their containers. */
import { kubectlCommand } from "./clients.ts";
import { attempt, CommandFailed } from "./shell.ts";

/** What is read of a Deployment. */
export interface OperatorDeployment {
  readonly metadata: {
    readonly name?: string;
    readonly namespace?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: {
    readonly replicas?: number;
    readonly template: { readonly spec?: { readonly containers: readonly OperatorContainer[] } };
  };
  readonly status?: { readonly availableReplicas?: number };
}

interface OperatorContainer {
  readonly image?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

export interface InstalledOperator {
  /** The Go operator must not be replaced unless the user wants that. */
  readonly isGo: boolean;
  /** Of the Deployment. */
  readonly name: string;
  readonly namespace: string;
  readonly deployment: OperatorDeployment;
}

export const operatorNamespace = "pulumi-kubernetes-operator";
/** The names of the Deployment in the manifest, and in the chart. Those of the Go operator are the same. */
export const manifestDeployment = "controller-manager";
export const chartDeployment = `${operatorNamespace}-${manifestDeployment}`;

type Query = (command: readonly string[]) => ReturnType<typeof attempt>;

/** Those of all namespaces: each operator takes the Lease in its own namespace, so two of them would lead. */
export async function readDeployments(query: Query = attempt): Promise<readonly OperatorDeployment[]> {
  const everywhere = listCommand("--all-namespaces");
  const result = await query(everywhere);
  if (result.code !== 0 && isForbidden(result.stderr)) return await readOwnDeployments(query);
  return parseList(everywhere, result);
}

async function readOwnDeployments(query: Query): Promise<readonly OperatorDeployment[]> {
  console.error(
    `you may not list the Deployments of all namespaces, so only namespace ${operatorNamespace} is searched for an operator`,
  );
  const command = listCommand(`--namespace=${operatorNamespace}`);
  return parseList(command, await query(command));
}

const listCommand = (scope: string): string[] => kubectlCommand("get", "deployments", scope, "--output=json");

/** By what kubectl prints for a response with status 403. */
const isForbidden = (stderr: string): boolean => stderr.includes("(Forbidden)");

function parseList(command: readonly string[], result: Awaited<ReturnType<Query>>): readonly OperatorDeployment[] {
  if (result.code !== 0) throw new CommandFailed(command, result);
  return (JSON.parse(result.stdout) as { readonly items: readonly OperatorDeployment[] }).items;
}

export function installedOperators(deployments: readonly OperatorDeployment[]): InstalledOperator[] {
  return deployments.flatMap((deployment) => {
    const { name = "", namespace = "" } = deployment.metadata;
    const containers = containersOf(deployment);
    const isGo = !containers.some(isThisOperator);
    return isGo && !containers.some(isGoOperator) ? [] : [{ isGo, name, namespace, deployment }];
  });
}

/** A clause for messages. */
export function describeOperator({ isGo, name, namespace }: InstalledOperator): string {
  const which = isGo ? "the Go operator" : "this operator";
  return `${which} is installed on this cluster (Deployment ${name} in namespace ${namespace})`;
}

/** Empty if it serves all namespaces. */
export function servedNamespaces({ deployment }: InstalledOperator): string[] {
  const variables = containersOf(deployment).flatMap(({ env = [] }) => env);
  const { value = "" } = variables.find(({ name }) => name === "OPERATOR_WATCH_NAMESPACES") ?? {};
  return value.split(",").filter(Boolean);
}

export const isScaledToZero = ({ deployment }: InstalledOperator): boolean => deployment.spec?.replicas === 0;

export const containersOf = ({ spec }: OperatorDeployment): readonly OperatorContainer[] =>
  spec?.template.spec?.containers ?? [];

/** Not by the prefix OPERATOR_: operators of others use it, and version 1 of the Go operator has OPERATOR_NAME. */
const isThisOperator = (container: OperatorContainer): boolean => hasVariable(container, "OPERATOR_AGENT_IMAGE");

/** By its image, or by a flag of version 2 or a variable of version 1, because a mirror may have another name. */
function isGoOperator(container: OperatorContainer): boolean {
  const { image = "", command = [], args = [] } = container;
  const words = [...command, ...args];
  return (
    words.some((word) => word.startsWith("--program-fs-adv-addr")) ||
    hasVariable(container, "PULUMI_INFER_NAMESPACE") ||
    (/(?:^|\/)pulumi-kubernetes-operator(?:[:@]|$)/.test(image) && !isConsole(words))
  );
}

/** The chart runs the console with the image of this operator. */
const isConsole = ([first]: readonly string[]): boolean => first === "console";

const hasVariable = ({ env = [] }: OperatorContainer, variable: string): boolean =>
  env.some(({ name }) => name === variable);
