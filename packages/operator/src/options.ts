/** The operator's settings: flags, each with an environment variable and, if possible, a default for clusters. */
import { hostname } from "node:os";
import { parseArgs } from "node:util";

import { parseDuration, type OidcHolder } from "@pko/api";
import { helpText, type Flag as FlagEntry } from "@pko/process/help";
import { parseLogFormat, parseLogLevel, type Listen, type LogFormat, type LogLevel } from "@pko/kube";

import type { OidcDefaults } from "./workspace/pod/oidc.ts";

export interface Options {
  /** Path of a kubeconfig; the pod's credentials when absent. The variable KUBECONFIG is never read. */
  readonly kubeconfig?: string;
  /** The operator's namespace, with the Secret of the CA and the Lease. */
  readonly namespace: string;
  /** The namespaces to serve; all of them when empty. */
  readonly watchNamespaces: readonly string[];
  readonly podName: string;
  /** The image with the agent's executable. */
  readonly agentImage: string;
  readonly agentImagePullPolicy?: PullPolicy;
  /** How many updates may run at the same time; any number when 0. */
  readonly maxConcurrentUpdates: number;
  /** The same for each namespace. */
  readonly maxConcurrentUpdatesPerNamespace: number;
  /** How long a workspace keeps its pod after its last work; forever when 0. */
  readonly idleTimeoutSeconds: number;
  /** How long a pod may be overdue before its node counts as lost. */
  readonly lostNodeAfterMs: number;
  /** Whether pods that violate their Workspace's security profile are rejected; if not, the pod template wins. */
  readonly enforceSecurityProfile: boolean;
  /** How often Secrets and ConfigMaps in use are checked for changes. */
  readonly referenceCheckMs: number;
  /** For tests: the shortest `resyncFrequencySeconds` that is respected. */
  readonly minResyncMs: number;
  /** Whether the operator upgrades its CRDs when it starts. */
  readonly upgradeCrds: boolean;
  readonly log: { readonly level: LogLevel; readonly format: LogFormat };
  /** Where probes and metrics are served; nowhere if absent. */
  readonly probes?: Listen;
  readonly metrics?: Listen;
  /** Where webhooks are received; nowhere if absent. */
  readonly webhooks?: {
    readonly listen: Listen;
    /** With the files tls.crt and tls.key; a certificate that only encrypts is created if absent. */
    readonly certificateDirectory?: string;
    /** Where other replicas reach this one; by default its first address. */
    readonly podIp?: string;
  };
  /** Metrics over HTTPS, for callers whose token may `get` the path `/metrics`. */
  readonly metricsSecure: boolean;
  /** How long a request to the API server may take, with all its attempts. */
  readonly kubeApiTimeoutMs: number;
  readonly leaderElection?: {
    readonly leaseDurationMs: number;
    readonly renewDeadlineMs: number;
    readonly retryPeriodMs: number;
  };
  /** How workspaces authenticate to Pulumi Cloud that configure neither a token nor OIDC. */
  readonly oidc: OidcDefaults;
  /** The most bytes that a Flux artifact may unpack to. */
  readonly maxUnpackedBytes: number;
  /** The most bytes of all records of runs together. */
  readonly maxRecordsBytes: number;
  /** Allows plain HTTP for repositories: the chart value git.allowHttp. */
  readonly allowHttp: boolean;
  /** For tests: addresses that are otherwise rejected, such as 127.0.0.1. */
  readonly allowedAddresses: readonly string[];
}

const pullPolicies = ["Always", "IfNotPresent", "Never"] as const;
type PullPolicy = (typeof pullPolicies)[number];

const flags = {
  kubeconfig: {
    type: "string",
    help: "The path of a kubeconfig. Without it, the credentials of the pod are used. KUBECONFIG is not read.",
  },
  namespace: {
    type: "string",
    default: "pulumi-kubernetes-operator",
    help: "The operator's namespace, with its Lease and the Secret of its CA.",
  },
  "watch-namespaces": {
    type: "string",
    default: "",
    help: "The namespaces to serve, separated by commas; all of them if empty.",
  },
  "pod-name": { type: "string", help: "The name of this replica; the host name if absent." },
  "agent-image": { type: "string", help: "The image with the agent's executable. Required." },
  "agent-image-pull-policy": {
    type: "string",
    help: "The pull policy of the agent's image: Always, IfNotPresent or Never.",
  },
  "max-concurrent-updates": {
    type: "string",
    default: "20",
    help: "How many updates may run at the same time; 0 for any number.",
  },
  "max-concurrent-updates-per-namespace": { type: "string", default: "10", help: "The same for each namespace." },
  "idle-timeout-seconds": {
    type: "string",
    default: "600",
    help: "How long a workspace is idle before it is scaled to zero; 0 for never.",
  },
  "lost-node-after": {
    type: "string",
    default: "5m",
    help: "How long a pod may be unresponsive before its node is considered lost.",
  },
  "enforce-security-profile": {
    type: "string",
    default: "true",
    help: "Whether to reject pod templates that violate their security profile: true or false.",
  },
  "reference-check-interval": {
    type: "string",
    default: "1m",
    help: "How often to check the Secrets and ConfigMaps in use for changes.",
  },
  "min-resync": {
    type: "string",
    default: "1m",
    help: "For tests: the shortest resyncFrequencySeconds that is respected.",
  },
  "upgrade-crds": { type: "boolean", default: false, help: "Creates and upgrades the operator's CRDs at startup." },
  "log-level": {
    type: "string",
    default: "info",
    help: "The log level: debug, info, warn or error. The annotation pulumi.com/log-level of the Lease overrides it.",
  },
  "log-format": { type: "string", default: "json", help: "The log format: json or console." },
  "probe-address": { type: "string", default: "0.0.0.0:8081", help: "Where to serve the probes." },
  "metrics-address": { type: "string", default: "0.0.0.0:8383", help: "Where to serve metrics." },
  "webhook-address": { type: "string", help: "Where to receive webhooks over HTTPS; nowhere if absent." },
  "webhook-cert-dir": {
    type: "string",
    help: "The directory with tls.crt and tls.key for webhooks; without it, the certificate is self-signed.",
  },
  "pod-ip": { type: "string", help: "The address at which other replicas forward webhooks to this one." },
  "metrics-secure": {
    type: "boolean",
    default: false,
    help: "Serves metrics over HTTPS, to callers whose token may get /metrics.",
  },
  "kube-api-timeout": {
    type: "string",
    default: "30s",
    help: "The timeout of a request to the API server, with all its attempts.",
  },
  "leader-elect": {
    type: "boolean",
    default: false,
    help: "Works only while this replica holds the Lease; needed if there are several.",
  },
  "lease-duration": { type: "string", default: "15s", help: "How long a Lease that is not renewed is valid." },
  "renew-deadline": {
    type: "string",
    default: "10s",
    help: "How long the leader tries to renew the Lease before it stops.",
  },
  "retry-period": {
    type: "string",
    default: "2s",
    help: "The time between two attempts to acquire or renew the Lease.",
  },
  "oidc-enabled": {
    type: "string",
    default: "true",
    help: "Whether workspaces without an access token sign in to Pulumi Cloud with their service account's token: true or false.",
  },
  "oidc-organization": {
    type: "string",
    help: "The organization on Pulumi Cloud; by default that of the Pulumi stack.",
  },
  "oidc-team": { type: "string", help: "Sign in as this team." },
  "oidc-user": { type: "string", help: "Sign in as this user." },
  "oidc-admin": {
    type: "boolean",
    default: false,
    help: "Sign in with the permissions of an administrator of the organization.",
  },
  "oidc-expiration-seconds": { type: "string", default: "7200", help: "How long the access tokens are valid." },
  "flux-max-unpacked-bytes": {
    type: "string",
    default: "104857600",
    help: "The most bytes that a Flux artifact may unpack to; -1 for no limit.",
  },
  "records-max-total-size": {
    type: "string",
    default: "512Mi",
    help: "The maximum size of all records of runs together.",
  },
  "allow-http": { type: "boolean", default: false, help: "Allows repositories over plain HTTP." },
  "allow-addresses": {
    type: "string",
    default: "",
    help: "For tests: addresses that are otherwise rejected, such as 127.0.0.1.",
  },
} as const satisfies Readonly<Record<string, FlagEntry>>;

type Flag = keyof typeof flags;

export const operatorHelp = (): string =>
  helpText({
    usage: ["operator [flags]", "operator console [flags]", "operator profile heap|cpu [flags]"],
    about:
      "Runs the operator; with console, the web console; with profile, prints a profile of the operator in this container.",
    flags,
    variableOf,
  });

/** Prefix of the environment variables of flags: `OPERATOR_AGENT_IMAGE` for `--agent-image`. */
const variablePrefix = "OPERATOR_";

/** A setting that the user has to correct. */
export class OptionsError extends Error {
  constructor(flag: Flag, problem: string) {
    super(`--${flag} (or ${variableOf(flag)}) ${problem}`);
    this.name = "OptionsError";
  }
}

export function parseOptions(args: readonly string[], env: NodeJS.ProcessEnv): Options {
  const values = readValues(args, env);
  const kubeconfig = values.text("kubeconfig");
  const pullPolicy = values.optional(
    "agent-image-pull-policy",
    parsePullPolicy,
    `is not one of ${pullPolicies.join(", ")}`,
  );
  return {
    ...(kubeconfig !== undefined && { kubeconfig }),
    namespace: values.required("namespace"),
    watchNamespaces: values.list("watch-namespaces"),
    podName: values.text("pod-name") ?? hostname(),
    agentImage: values.required("agent-image"),
    ...(pullPolicy && { agentImagePullPolicy: pullPolicy }),
    maxConcurrentUpdates: values.number("max-concurrent-updates"),
    maxConcurrentUpdatesPerNamespace: values.number("max-concurrent-updates-per-namespace"),
    idleTimeoutSeconds: values.number("idle-timeout-seconds"),
    lostNodeAfterMs: values.duration("lost-node-after"),
    enforceSecurityProfile: values.boolean("enforce-security-profile"),
    referenceCheckMs: values.duration("reference-check-interval"),
    minResyncMs: values.duration("min-resync"),
    upgradeCrds: values.flag("upgrade-crds"),
    log: {
      level: values.parsed("log-level", parseLogLevel, "is not a level: use debug, info, warn or error"),
      format: values.parsed("log-format", parseLogFormat, "is not a format: use json or console"),
    },
    probes: values.parsed("probe-address", parseListen, "is not HOST:PORT"),
    metrics: values.parsed("metrics-address", parseListen, "is not HOST:PORT"),
    ...parseWebhooks(values),
    metricsSecure: values.flag("metrics-secure"),
    kubeApiTimeoutMs: values.duration("kube-api-timeout"),
    ...(values.flag("leader-elect") && {
      leaderElection: {
        leaseDurationMs: values.duration("lease-duration"),
        renewDeadlineMs: values.duration("renew-deadline"),
        retryPeriodMs: values.duration("retry-period"),
      },
    }),
    oidc: parseOidc(values),
    maxUnpackedBytes: values.parsed(
      "flux-max-unpacked-bytes",
      parseLimit,
      "is not a number of bytes, or -1 for no limit",
    ),
    maxRecordsBytes: values.parsed("records-max-total-size", parseSize, "is not a size such as 512Mi"),
    allowHttp: values.flag("allow-http"),
    allowedAddresses: values.list("allow-addresses"),
  };
}

function parseWebhooks(values: ReturnType<typeof readValues>): Pick<Options, "webhooks"> {
  const listen = values.optional("webhook-address", parseListen, "is not HOST:PORT");
  const [certificateDirectory, podIp] = [values.text("webhook-cert-dir"), values.text("pod-ip")];
  if (!listen) return {};
  return {
    webhooks: {
      listen,
      ...(certificateDirectory !== undefined && { certificateDirectory }),
      ...(podIp !== undefined && { podIp }),
    },
  };
}

function parseOidc(values: ReturnType<typeof readValues>): OidcDefaults {
  const organization = values.text("oidc-organization");
  return {
    automatic: values.boolean("oidc-enabled"),
    ...(organization !== undefined && { organization }),
    holder: parseHolder(values),
    expirationSeconds: values.number("oidc-expiration-seconds"),
  };
}

function parseHolder(values: ReturnType<typeof readValues>): OidcHolder {
  const [team, user] = [values.text("oidc-team"), values.text("oidc-user")];
  const admin = values.flag("oidc-admin");
  if (team !== undefined && user !== undefined)
    throw new OptionsError("oidc-user", "cannot be combined with --oidc-team");
  if (admin && (team ?? user) !== undefined)
    throw new OptionsError("oidc-admin", "cannot be combined with --oidc-team or --oidc-user");
  if (team !== undefined) return { kind: "team", team };
  return user === undefined ? { kind: "organization", admin } : { kind: "user", user };
}

function readValues(args: readonly string[], env: NodeJS.ProcessEnv) {
  const { values } = parseArgs({ args: [...args], options: flags, strict: true, allowPositionals: false });
  const given = (name: Flag): string | boolean | undefined => {
    const isDefault = !args.some((argument) => argument === `--${name}` || argument.startsWith(`--${name}=`));
    return (isDefault ? env[variableOf(name)] : undefined) ?? values[name];
  };
  const text = (name: Flag): string | undefined => {
    const value = given(name);
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const required = (name: Flag): string => {
    const value = text(name);
    if (value === undefined) throw new OptionsError(name, "is missing");
    return value;
  };
  const parsed = <T>(name: Flag, parse: (text: string) => T | undefined, problem: string): T => {
    const value = parse(required(name));
    if (value === undefined) throw new OptionsError(name, problem);
    return value;
  };
  const boolean = (name: Flag): boolean => parsed(name, parseBoolean, "is neither true nor false");
  return {
    text,
    required,
    parsed,
    boolean,
    /** Off unless the flag is given; its environment variable is true or false. */
    flag: (name: Flag): boolean => given(name) === true || (text(name) !== undefined && boolean(name)),
    list: (name: Flag): string[] => (text(name) ?? "").split(",").filter((item) => item !== ""),
    optional: <T>(name: Flag, parse: (text: string) => T | undefined, problem: string): T | undefined =>
      text(name) === undefined ? undefined : parsed(name, parse, problem),
    duration: (name: Flag): number => parsed(name, parsePositiveDuration, "is not a duration such as 15s"),
    number: (name: Flag): number => parsed(name, parseNumber, "is not a whole number that is 0 or more"),
  };
}

function variableOf(flag: string): string {
  return variablePrefix + flag.toUpperCase().replaceAll("-", "_");
}

function parseBoolean(text: string): boolean | undefined {
  return text === "true" ? true : text === "false" ? false : undefined;
}

/** Every environment variable that is read. */
export const optionVariables: readonly string[] = (Object.keys(flags) as Flag[]).map(variableOf);

function parseNumber(text: string): number | undefined {
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

function parseLimit(text: string): number | undefined {
  return text === "-1" ? Number.MAX_SAFE_INTEGER : parseNumber(text);
}

const sizeUnits: Readonly<Record<string, number>> = { "": 1, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 };

function parseSize(text: string): number | undefined {
  const [, digits, unit = ""] = /^(\d+)(Ki|Mi|Gi)?$/.exec(text) ?? [];
  return digits === undefined ? undefined : Number(digits) * (sizeUnits[unit] ?? 1);
}

function parsePositiveDuration(text: string): number | undefined {
  const milliseconds = parseDuration(text);
  return milliseconds !== undefined && milliseconds > 0 ? milliseconds : undefined;
}

function parsePullPolicy(text: string): PullPolicy | undefined {
  return pullPolicies.find((policy) => policy === text);
}

function parseListen(text: string): Listen | undefined {
  const [, host, port] = /^(.*):(\d+)$/.exec(text) ?? [];
  return host !== undefined && Number(port) <= 65_535 ? { hostname: host, port: Number(port) } : undefined;
}
