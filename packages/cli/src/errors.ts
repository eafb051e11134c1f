/** What a failed command shows: what happened, why, and what to do. And its exit code. */
import {
  ApiError,
  ConnectionError,
  isUnauthorized,
  missingPermission,
  permittedResource,
  type MissingPermission,
} from "@pko/kube";

/** Documented in docs/cli.md. */
export const exitCodes = {
  success: 0,
  /** The command failed, or what it waited for. */
  failure: 1,
  usage: 2,
  notFound: 3,
  forbidden: 4,
  unreachable: 5,
  notConfirmed: 6,
  /** As shells report SIGINT. */
  interrupted: 130,
} as const;

interface Details {
  readonly exitCode?: number;
  /** What to do about it. */
  readonly fix?: string;
}

/** An expected failure of a command. */
export class CliError extends Error {
  readonly exitCode: number;
  readonly fix: string | undefined;

  constructor(message: string, { exitCode = exitCodes.failure, fix }: Details = {}) {
    super(message);
    this.name = "CliError";
    this.exitCode = exitCode;
    this.fix = fix;
  }
}

export const usageError = (message: string, fix?: string): CliError =>
  new CliError(message, { exitCode: exitCodes.usage, ...(fix !== undefined && { fix }) });

export const notFound = (message: string, fix?: string): CliError =>
  new CliError(message, { exitCode: exitCodes.notFound, ...(fix !== undefined && { fix }) });

/** The kinds of the operator are not installed in the cluster. The message of a missing object names the object. */
export const isKindUnknown = (error: unknown): boolean =>
  error instanceof ApiError &&
  error.status === 404 &&
  error.explanation.includes("could not find the requested resource");

export const kindsMissing = {
  message: "The cluster does not serve Stacks: the CRDs of the operator are not installed.",
  fix: "Install the operator, or select another cluster with --context.",
} as const;

/** Every error of a command, as an expected failure; undefined if it is unexpected. */
export function asCliError(error: unknown, server = "the API server"): CliError | undefined {
  if (error instanceof CliError) return error;
  if (isKindUnknown(error)) return notFound(kindsMissing.message, kindsMissing.fix);
  const missing = missingPermission(error);
  if (missing && error instanceof ApiError) return forbidden(missing, error);
  if (isUnauthorized(error)) {
    const fix = "Log in again, or select another context with --context.";
    return new CliError(`The API server rejects the credentials of the kubeconfig: ${error.explanation}`, {
      exitCode: exitCodes.forbidden,
      fix,
    });
  }
  if (error instanceof ApiError) return new CliError(`The API server rejected the request: ${error.explanation}`);
  if (error instanceof ConnectionError) return unreachable(error, server);
  return undefined;
}

function unreachable({ code }: ConnectionError, server: string): CliError {
  const fix = "Check the network and the server of the kubeconfig, or select another context with --context.";
  return new CliError(`Cannot reach ${server} (${code}).`, { exitCode: exitCodes.unreachable, fix });
}

function forbidden(missing: MissingPermission, { explanation }: ApiError): CliError {
  const [, user = "you"] = /^.*?User "([^"]+)"/.exec(explanation) ?? [];
  const { verb, namespace } = missing;
  const resource = permittedResource(missing);
  const where = namespace === undefined ? "in the whole cluster" : `in namespace ${namespace}`;
  const flag = namespace === undefined ? "--all-namespaces" : `--namespace ${namespace}`;
  return new CliError(`Permission denied: ${user} cannot ${verb} ${resource} ${where}.`, {
    exitCode: exitCodes.forbidden,
    fix: `An administrator can grant it with a Role that allows: ${verb} ${resource}. To check: kubectl auth can-i ${verb} ${resource} ${flag}`,
  });
}

export { permissionText } from "@pko/kube";
