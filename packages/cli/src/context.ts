/** What a command needs of the cluster: a client with the user's own credentials, and the namespace. */
import { homedir } from "node:os";
import { delimiter, join } from "node:path";

import { version } from "@pko/api";
import {
  connect,
  inClusterCredentials,
  isNotFound,
  kubeconfigCredentials,
  type Client,
  type Credentials,
  type KubeObject,
  type Resource,
} from "@pko/kube";

import { CliError, exitCodes, isKindUnknown, notFound } from "./errors.ts";
import type { Io } from "./io.ts";

export const outputFormats = ["text", "json", "yaml"] as const;
export type OutputFormat = (typeof outputFormats)[number];

export interface GlobalOptions {
  readonly namespace?: string;
  readonly allNamespaces?: boolean;
  readonly context?: string;
  readonly kubeconfig?: string;
  readonly output?: string;
  readonly operatorNamespace?: string;
}

export interface Context {
  readonly io: Io;
  readonly client: Client;
  readonly credentials: Credentials;
  readonly namespace: string;
  readonly allNamespaces: boolean;
  /** Where the operator runs, if the user has given it. */
  readonly operatorNamespace?: string;
}

export async function openContext(io: Io, options: GlobalOptions): Promise<Context> {
  const credentials = await userCredentials(io, options);
  return {
    io,
    credentials,
    client: connect(credentials, { userAgent: `kubectl-pulumi/${version}`, attempts: 3 }),
    namespace: options.namespace ?? credentials.namespace ?? "default",
    allNamespaces: options.allNamespaces ?? false,
    ...(options.operatorNamespace !== undefined && { operatorNamespace: options.operatorNamespace }),
  };
}

/** Like kubectl: --kubeconfig, then KUBECONFIG, then ~/.kube/config, then the service account of the pod. */
async function userCredentials(io: Io, options: GlobalOptions): Promise<Credentials> {
  const { context } = options;
  const paths = kubeconfigPaths(io.env, options.kubeconfig);
  try {
    return await kubeconfigCredentials(paths.length === 1 ? (paths[0] ?? "") : paths, {
      ...(context !== undefined && { context }),
    });
  } catch (error) {
    const isGiven = options.kubeconfig !== undefined || Boolean(io.env["KUBECONFIG"]);
    if (!isGiven && isMissingFile(error) && io.env["KUBERNETES_SERVICE_HOST"]) return await inClusterCredentials();
    throw new CliError(isMissingFile(error) ? `There is no kubeconfig ${paths.join(", ")}.` : `${text(error)}.`, {
      exitCode: exitCodes.usage,
      fix: "Give the path of a kubeconfig with --kubeconfig or KUBECONFIG, and a context of it with --context.",
    });
  }
}

const text = (error: unknown): string => (error instanceof Error ? error.message : String(error));
const isMissingFile = (error: unknown): boolean => error instanceof Error && "code" in error && error.code === "ENOENT";

export function kubeconfigPaths(env: Io["env"], given?: string): string[] {
  if (given !== undefined) return [given];
  const listed = env["KUBECONFIG"]?.split(delimiter).filter(Boolean) ?? [];
  return listed.length > 0 ? listed : [join(env["HOME"] ?? homedir(), ".kube/config")];
}

/** The object of a name in the namespace; an error that names what exists otherwise. */
export async function findNamed<T extends KubeObject>(
  { client, namespace }: Pick<Context, "client" | "namespace">,
  resource: Resource<T>,
  name: string,
): Promise<T> {
  try {
    return await client.get(resource, { namespace, name });
  } catch (error) {
    if (!isNotFound(error) || isKindUnknown(error)) throw error;
    const { kind } = resource;
    const fix = `To list the ${kind}s: kubectl get ${resource.plural} --namespace ${namespace}. For another namespace, use -n.`;
    throw notFound(`There is no ${kind} ${name} in namespace ${namespace}.`, fix);
  }
}
