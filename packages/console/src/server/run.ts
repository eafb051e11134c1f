/** The console as a process in the cluster: it has no credentials of its own. */
import { parseArgs } from "node:util";

import { fileText, logger, parseLogFormat, parseLogLevel, type Logger, type LoggerOptions } from "@pko/kube";

import { helpText, ownFlag, type Flag } from "@pko/process/help";
import { settingsOrExit } from "@pko/process/settings";
import { maskCredentials } from "@pko/records";

import { startConsole } from "./console.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const flags = {
  port: { type: "string", default: "8080", help: "The port to listen on." },
  hosts: {
    type: "string",
    default: "",
    help: "The names by which browsers reach it, separated by commas; any if empty.",
  },
  "api-ca": {
    type: "string",
    default: "/etc/kubernetes-ca/ca.crt",
    help: "The certificates that authenticate the API server.",
  },
  "log-level": { type: "string", default: "info", help: "The log level: debug, info, warn or error." },
  "log-format": { type: "string", default: "json", help: "The log format: json or console." },
} as const satisfies Readonly<Record<string, Flag>>;

const help = (): string =>
  helpText({ usage: ["operator console [flags]"], about: "Serves the web console in the cluster.", flags });

interface Settings {
  readonly port: number;
  readonly hosts: readonly string[];
  readonly server: string;
  readonly caPath: string;
  readonly logLevel: string;
  readonly logFormat: string;
}

export function parseSettings(args: readonly string[], environment: Environment): Settings {
  const { values } = parseArgs({ args: [...args], options: flags, allowPositionals: false });
  const port = Number(values.port);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error(`--port ${values.port} is not a port`);
  const host = environment["KUBERNETES_SERVICE_HOST"];
  const apiPort = environment["KUBERNETES_SERVICE_PORT"];
  if (!host || !apiPort) throw new Error("not in a cluster: KUBERNETES_SERVICE_HOST and _PORT are not set");
  return {
    port,
    hosts: values.hosts
      .split(",")
      .map((name) => name.trim().toLowerCase())
      .filter(Boolean),
    server: `https://${host.includes(":") ? `[${host}]` : host}:${apiPort}`,
    caPath: values["api-ca"],
    logLevel: values["log-level"],
    logFormat: values["log-format"],
  };
}

/** The API server and the requests of browsers may repeat a URL or a header in messages. */
const createLog = (options: LoggerOptions = {}): Logger =>
  logger({ ...options, redact: (text) => maskCredentials(text) }).child({ logger: "console" });

/** Runs until SIGTERM or SIGINT. */
export async function runConsole(args: readonly string[], environment: Environment): Promise<void> {
  if (ownFlag(args) === "help") return void process.stdout.write(help());
  const settings = settingsOrExit(createLog(), "the console cannot start", () => parseSettings(args, environment));
  const { port, hosts, server, caPath, logLevel, logFormat } = settings;
  const log = createLog({ level: parseLogLevel(logLevel) ?? "info", format: parseLogFormat(logFormat) ?? "json" });
  // Before it is ready: a signal that nothing handles ends the process, or is dropped if that is the first of its container.
  const ended = Promise.withResolvers<string>();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => ended.resolve(signal));
  const ca = fileText(caPath);
  const started = await startConsole({
    signIn: { mode: "cluster", server, ca: async () => await ca() },
    port,
    hosts,
    log,
  }).catch((error: unknown) => {
    log.error("the console cannot start", { error });
    return process.exit(1);
  });
  log.info("the console is ready", { port: started.port, server });
  log.info("stopping", { signal: await ended.promise });
  await started.stop();
}
