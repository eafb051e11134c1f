/** A real forge: Gitea, as a process of a user that is not root, with SQLite, on loopback. */
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { dependencyFolder, toolPath } from "@pko/cluster";

import { spawnChild } from "./child-process.ts";
import { freePort } from "./free-port.ts";
import { shared } from "./shared.ts";
import { waitFor } from "./wait-for.ts";

export interface Gitea {
  /** Without a slash at the end. */
  readonly url: string;
  /** Of an administrator, who owns the repositories. */
  readonly user: string;
  readonly password: string;
  /** With all permissions. */
  readonly token: string;
  /** Calls its API; throws if the response is an error. */
  api<T = unknown>(method: string, path: string, body?: object): Promise<T>;
  log(): Promise<string>;
  stop(): Promise<void>;
}

const user = "tester";
const password = "a password of the tests";
/** nobody: Gitea does not run as root. */
const account = 65_534;

/** `make test` builds it. Each test has its own repository. */
export const sharedGitea = shared(startGitea, (gitea) => gitea.stop());

async function startGitea(): Promise<Gitea> {
  const folder = mkdtempSync(join(tmpdir(), "pko-gitea-"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const config = join(folder, "app.ini");
  writeFileSync(config, settings({ folder, port, sources: await dependencyFolder("gitea", "code.gitea.io/gitea") }));
  if (isRoot) for (const path of [folder, config]) chownSync(path, account, account);
  const env = { HOME: folder, USER: isRoot ? "nobody" : (process.env["USER"] ?? ""), TMPDIR: folder };
  const gitea = (...args: string[]): string[] => [...unprivileged, toolPath("gitea"), "--config", config, ...args];
  const child = spawnChild({ command: gitea("web"), logFile: join(folder, "log"), env });
  const isReady = async (): Promise<boolean> =>
    !child.running ||
    (await fetch(`${url}/api/v1/version`).then(
      ({ ok }) => ok,
      () => false,
    ));
  await waitFor(isReady, { timeoutMs: 150_000, what: "Gitea" });
  if (!child.running) throw new Error(`Gitea exited: ${await child.log()}`);
  // It has created its database, so that commands can write to it.
  const create = `admin user create --admin --username ${user} --email tester@example.com --must-change-password=false`;
  const withToken = "--access-token --access-token-name tests --access-token-scopes all";
  const created = await execute(gitea(...create.split(" "), ...withToken.split(" "), "--password", password), env);
  const [token = ""] = /\b[0-9a-f]{40}\b/.exec(created) ?? [];
  return {
    url,
    user,
    password,
    token,
    api: (method, path, body) => call({ url, token }, { method, path, body }),
    log: () => child.log(),
    async stop() {
      await child.stop("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const isRoot = process.getuid?.() === 0;

/** It may read the files of root, because the executable and the module cache may be in root's home. */
const asNobody = `setpriv --reuid ${account} --regid ${account} --clear-groups --inh-caps=+dac_read_search --ambient-caps=+dac_read_search --`;
const unprivileged = isRoot ? asNobody.split(" ") : [];

interface Settings {
  readonly folder: string;
  readonly port: number;
  /** The folder with its templates and translations. */
  readonly sources: string;
}

function settings({ folder, port, sources }: Settings): string {
  return `
APP_NAME = test
RUN_MODE = prod
RUN_USER = ${isRoot ? "nobody" : (process.env["USER"] ?? "")}
WORK_PATH = ${folder}
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = ${port}
ROOT_URL = http://127.0.0.1:${port}/
STATIC_ROOT_PATH = ${sources}
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = ${folder}/gitea.db
SQLITE_TIMEOUT = 60000
SQLITE_JOURNAL_MODE = WAL
[repository]
ROOT = ${folder}/repositories
DEFAULT_BRANCH = main
[security]
INSTALL_LOCK = true
[service]
DISABLE_REGISTRATION = true
[webhook]
ALLOWED_HOST_LIST = loopback
SKIP_TLS_VERIFY = true
[indexer]
ISSUE_INDEXER_TYPE = db
[cron]
ENABLED = false
[actions]
ENABLED = false
[packages]
ENABLED = false
[log]
MODE = console
LEVEL = Warn
`;
}

async function execute(command: readonly string[], env: Record<string, string>): Promise<string> {
  const child = Bun.spawn([...command], { env: { PATH: process.env["PATH"] ?? "", ...env }, stderr: "pipe" });
  const [output, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")} failed: ${errors || output}`);
  return output;
}

interface Call {
  readonly method: string;
  readonly path: string;
  readonly body: object | undefined;
}

async function call<T>({ url, token }: { url: string; token: string }, { method, path, body }: Call): Promise<T> {
  const response = await fetch(`${url}/api/v1${path}`, {
    method,
    headers: { authorization: `token ${token}`, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`Gitea responded with ${response.status} to ${method} ${path}: ${text}`);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}
