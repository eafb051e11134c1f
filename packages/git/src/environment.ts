/** How git is started: isolated from the settings of the machine and the user. */
import type { Environment, NetworkPolicy } from "./addresses.ts";

/** The variables that git inherits: the network between it and the server may need them. */
const inheritedNames = [
  "PATH",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "NO_PROXY",
  "ALL_PROXY",
  "http_proxy",
  "https_proxy",
  "no_proxy",
  "all_proxy",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "GIT_SSL_CAINFO",
] as const;

export interface GitProcessContext {
  /** A folder for git alone. */
  readonly home: string;
  readonly policy: NetworkPolicy;
  /** The environment of this process. */
  readonly inherited: Environment;
}

export function gitEnvironment({ home, policy, inherited }: GitProcessContext): Record<string, string> {
  const kept = inheritedNames.flatMap((name) => {
    const value = inherited[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    ...Object.fromEntries(kept),
    HOME: home,
    LC_ALL: "C",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_ATTR_NOSYSTEM: "1",
    GIT_TERMINAL_PROMPT: "0",
    GIT_ASKPASS: "/bin/false",
    SSH_ASKPASS: "/bin/false",
    GIT_ALLOW_PROTOCOL: policy.allowHttp ? "https:ssh:http" : "https:ssh",
    GIT_PROTOCOL_FROM_USER: "0",
  };
}

/** One line of git's configuration. */
export type GitConfigLine = readonly [name: string, value: string];

/** Disables hooks, helpers and other transports. */
export function gitSettings(policy: NetworkPolicy): GitConfigLine[] {
  return [
    ["core.hooksPath", "/dev/null"],
    ["core.askPass", "/bin/false"],
    ["credential.helper", ""],
    ["protocol.allow", "never"],
    ["protocol.https.allow", "always"],
    ["protocol.ssh.allow", "always"],
    ["protocol.http.allow", policy.allowHttp ? "always" : "never"],
    // A redirect could lead to an unchecked address: `findMoved` follows redirects and checks each of them.
    ["http.followRedirects", "false"],
    ["http.lowSpeedLimit", "1000"],
  ];
}

/** Passes settings in variables, because other processes could read them on a command line. */
export function settingVariables(settings: readonly GitConfigLine[]): Record<string, string> {
  const variables: Record<string, string> = { GIT_CONFIG_COUNT: String(settings.length) };
  for (const [index, [name, value]] of settings.entries()) {
    variables[`GIT_CONFIG_KEY_${index}`] = name;
    variables[`GIT_CONFIG_VALUE_${index}`] = value;
  }
  return variables;
}
