/**
 * The agent's flags, with defaults for a workspace pod. The environment belongs to the user's program, so the agent reads
 * only the names of secret variables from it.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { helpText, type Flag } from "@pko/process/help";
import { secretVariablesVariable } from "@pko/rpc";
import type { OidcOptions } from "./pulumi/cloud/sign-in.ts";

interface Paths {
  /** The checkout. Programs may rely on this path, so it never changes. */
  readonly source: string;
  /** The container's working directory: a link to the project's folder, or that folder if an init container created it. */
  readonly workspace: string;
  readonly runs: string;
  /** The agent's own files: Git objects, settings of stacks, what is prepared. */
  readonly state: string;
}

export interface Options {
  readonly paths: Paths;
  readonly hostname: string;
  readonly port: number;
  /** The folder with `ca.crt`, `tls.crt` and `tls.key`. */
  readonly tls: string;
  readonly pulumi: string;
  readonly git: string;
  /** How long a CLI may take to stop after SIGINT before it is killed. */
  readonly graceSeconds: number;
  /** The Workspace's UID, which marks its updates on Pulumi Cloud. */
  readonly workspaceUid: string | undefined;
  /** The image of the pod's container: a plan is applied with the image that it was made with. */
  readonly image: string | undefined;
  /** The folder of caches that outlive the pod. Variables may name folders in it. */
  readonly caches: string | undefined;
  /** A folder for plugins that outlives the pod, and that other pods use at the same time. */
  readonly pluginCache: string | undefined;
  /** Folders of policy packs that every preview and update must satisfy. */
  readonly policyPacks: readonly string[];
  /** How to sign in to Pulumi Cloud with the service account's token. */
  readonly oidc: OidcOptions | undefined;
  /** Variables whose values are masked even if their names do not look secret. */
  readonly secretVariables: readonly string[];
  /** Allows plain http for repositories: the chart's value git.allowHttp. */
  readonly allowHttp: boolean;
  /** For tests: exceptions from the forbidden addresses, such as 127.0.0.1. */
  readonly allowedAddresses: readonly string[];
}

const flags = {
  share: {
    type: "string",
    default: "/share",
    help: "The volume of the workspace, which has the following four folders.",
  },
  source: { type: "string", help: "The folder of the checkout; by default, source in --share." },
  workspace: {
    type: "string",
    help: "The working directory, a link to the project's folder; by default, workspace in --share.",
  },
  runs: { type: "string", help: "The folder of the runs; by default, runs in --share." },
  state: { type: "string", help: "The folder of the agent's own files; by default, agent in --share." },
  host: { type: "string", default: "0.0.0.0", help: "The address to listen on." },
  port: { type: "string", default: "50051", help: "The port to listen on." },
  tls: {
    type: "string",
    default: "/var/run/secrets/auto.pulumi.com/tls",
    help: "The folder with ca.crt, tls.crt and tls.key.",
  },
  pulumi: { type: "string", default: "pulumi", help: "The Pulumi CLI." },
  git: { type: "string", default: "git", help: "The executable of Git." },
  "grace-seconds": {
    type: "string",
    default: "540",
    help: "How long a CLI may take to stop after SIGINT before it is killed.",
  },
  "workspace-uid": { type: "string", help: "The UID of the Workspace, which marks its updates on Pulumi Cloud." },
  image: {
    type: "string",
    help: "The image of the container: a plan is applied with the image that it was made with.",
  },
  caches: { type: "string", help: "The folder of caches that outlive the pod, which variables of tools name." },
  "plugin-cache": { type: "string", help: "A folder for plugins that outlives the pod." },
  "policy-pack": {
    type: "string",
    multiple: true,
    default: [] as string[],
    help: "A folder of a policy pack that every preview and update must satisfy. Can be repeated.",
  },
  "oidc-token": { type: "string", help: "The file with the service account's token, to sign in to Pulumi Cloud." },
  "oidc-organization": { type: "string", help: "The organization on Pulumi Cloud. Required with --oidc-token." },
  "oidc-scope": { type: "string", help: "The scope of the access tokens: a team, a user or an administrator." },
  "oidc-expiration-seconds": { type: "string", default: "7200", help: "How long the access tokens are valid." },
  "oidc-credentials": { type: "string", help: "The folder for the access tokens. Required with --oidc-token." },
  "allow-http": { type: "boolean", default: false, help: "Allows repositories over plain HTTP." },
  "allow-addresses": {
    type: "string",
    default: "",
    help: "For tests: addresses that are otherwise rejected, such as 127.0.0.1.",
  },
} as const satisfies Readonly<Record<string, Flag>>;

export const agentHelp = (): string =>
  helpText({
    usage: ["agent [flags]", "agent install PATH [FOLDER]", "agent repair PATH", "agent version"],
    about:
      "Serves the workspace. install copies this executable, and creates the folder in which a container starts; repair replaces an incomplete copy.",
    flags,
  });

export function parseOptions(args: readonly string[], env: NodeJS.ProcessEnv): Options {
  const { values } = parseArgs({ args: [...args], options: flags, strict: true, allowPositionals: false });
  const text = (name: keyof typeof flags): string | undefined => {
    const value = values[name];
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const share = text("share") ?? flags.share.default;
  return {
    paths: {
      source: text("source") ?? join(share, "source"),
      workspace: text("workspace") ?? join(share, "workspace"),
      runs: text("runs") ?? join(share, "runs"),
      state: text("state") ?? join(share, "agent"),
    },
    hostname: text("host") ?? flags.host.default,
    port: parseNumber("port", text("port"), 65_535),
    tls: text("tls") ?? flags.tls.default,
    pulumi: text("pulumi") ?? flags.pulumi.default,
    git: text("git") ?? flags.git.default,
    graceSeconds: parseNumber("grace-seconds", text("grace-seconds"), 86_400),
    workspaceUid: text("workspace-uid"),
    image: text("image"),
    caches: text("caches"),
    pluginCache: text("plugin-cache"),
    policyPacks: values["policy-pack"],
    oidc: parseOidc(text),
    secretVariables: parseList(env[secretVariablesVariable]),
    allowHttp: values["allow-http"],
    allowedAddresses: parseList(text("allow-addresses")),
  };
}

function parseOidc(text: (name: keyof typeof flags) => string | undefined): OidcOptions | undefined {
  const tokenFile = text("oidc-token");
  if (tokenFile === undefined) return undefined;
  const organization = text("oidc-organization");
  const credentials = text("oidc-credentials");
  if (organization === undefined || credentials === undefined) {
    throw new Error("--oidc-token needs --oidc-organization and --oidc-credentials");
  }
  const expirationSeconds = parseNumber("oidc-expiration-seconds", text("oidc-expiration-seconds"), 365 * 86_400);
  return { tokenFile, organization, scope: text("oidc-scope") ?? "", expirationSeconds, credentials };
}

function parseList(text = ""): string[] {
  return text.split(",").filter((item) => item !== "");
}

function parseNumber(name: string, text: string | undefined, max: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 0 && value <= max) return value;
  throw new Error(`--${name} must be a whole number between 0 and ${max}`);
}
