/**
 * The part of the CLI's environment that a plan depends on. It must be equal in every pod of the same Workspace, so what
 * differs between two pods is left out or replaced.
 */
import type { Environment } from "@pko/git";

/** Folders, shell variables and traces: programs find files with them, or report to them, but their values mean nothing. */
const ignored: ReadonlySet<string> = new Set([
  "HOME",
  "HOSTNAME",
  "OLDPWD",
  "PULUMI_CREDENTIALS_PATH",
  "PULUMI_ENV",
  "PULUMI_HOME",
  "PWD",
  "SHLVL",
  "TMPDIR",
  // Different for each run.
  "TRACEPARENT",
  "TRACESTATE",
  "_",
]);

export interface PodIdentity {
  readonly hostname: string;
  readonly addresses: readonly string[];
}

export function stableEnvironment(env: Environment, pod: PodIdentity): Record<string, string> {
  const links = serviceLinks(env);
  const kept = Object.entries(env).flatMap(([name, value]) => {
    if (value === undefined || ignored.has(name) || links.some((link) => link.test(name))) return [];
    return [[name, withoutIdentity(value, pod)] as const];
  });
  return Object.fromEntries(kept);
}

/** Variables with the pod's name or IP, such as those of the downward API. */
function withoutIdentity(value: string, { hostname, addresses }: PodIdentity): string {
  if (value === hostname) return "<name of the pod>";
  return addresses.includes(value) ? "<address of the pod>" : value;
}

/** Kubernetes sets these for every Service in the namespace when the pod starts. */
function serviceLinks(env: Environment): RegExp[] {
  return Object.keys(env).flatMap((name) => {
    const service = /^([A-Z0-9_]+)_SERVICE_HOST$/.exec(name)?.[1];
    if (service === undefined) return [];
    const address = `${env[name]}:${env[`${service}_SERVICE_PORT`]}`;
    // A variable of the user may have such a name, but has no matching URL in `<service>_PORT`.
    const isLink = /^(?:tcp|udp|sctp):\/\/(.+)$/.exec(env[`${service}_PORT`] ?? "")?.[1] === address;
    return isLink ? [new RegExp(`^${service}_(?:SERVICE_(?:HOST|PORT(?:_[A-Z0-9_]+)?)|PORT(?:_\\d+_.+)?)$`)] : [];
  });
}
