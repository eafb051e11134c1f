/** A real etcd and kube-apiserver on loopback, with their own folder, for integration tests. */
import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createCa, toolPath, type Authority, type KeyPair } from "@pko/cluster";
import { connect, staticCredentials, type Client, type ConnectOptions, type Credentials } from "@pko/kube";

import { spawnChild, type ChildProcess } from "./child-process.ts";
import { freePort } from "./free-port.ts";
import { kubeconfigText } from "./kubeconfig-text.ts";
import { kubectlFor, type Kubectl } from "./kubectl.ts";
import { patience } from "./patience.ts";
import { waitFor } from "./wait-for.ts";

interface User {
  readonly name: string;
  readonly group?: string;
}

export interface ApiServer {
  readonly url: string;
  /** For benchmarks that read its CPU time. */
  readonly pid: number;
  /** etcd's JSON API, for what would take many requests. */
  readonly etcdUrl: string;
  /** The CA of server and clients, in PEM. */
  readonly authority: Authority;
  /** Path of a cluster admin's kubeconfig. */
  readonly kubeconfig: string;
  readonly kubectl: Kubectl;
  /** Credentials of a cluster admin. */
  readonly credentials: Credentials;
  /** Authenticated as a cluster admin. */
  readonly client: Client;
  /** Credentials of a user with a client certificate who has only the permissions that a test binds to the name. */
  credentialsFor(user: User): Promise<Credentials>;
  clientFor(user: User, options?: ConnectOptions): Promise<Client>;
  /** Kills the API server like a crash. etcd keeps running. */
  kill(): Promise<void>;
  /** Restarts it with the same port and data; returns when it is ready. */
  restart(): Promise<void>;
  /** Stops everything and removes the folder. */
  stop(): Promise<void>;
}

const readyTimeoutMs = 150_000;
const folderPrefix = "pko-apiserver-";

interface ApiServerOptions {
  /** Of etcd and the API server, for a benchmark that must limit their memory. */
  readonly env?: Readonly<Record<string, string>>;
}

export async function startApiServer(options: ApiServerOptions = {}): Promise<ApiServer> {
  if (!existsSync(toolPath("kube")))
    throw new Error("the API server for tests is not built: run `make test`, which builds it");
  await removeLeftovers();
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(await mkdtemp(join(tmpdir(), `${folderPrefix}${process.pid}-`)), options);
    } catch (error) {
      // Another test run may have taken a free port before we use it.
      if (attempt === 3 || !String(error).includes("address already in use")) throw error;
    }
  }
}

async function start(folder: string, { env = {} }: ApiServerOptions): Promise<ApiServer> {
  const layout = await prepare(folder);
  const etcd = spawnChild({ command: etcdCommand(layout), logFile: join(folder, "etcd.log"), env });
  let apiServer = spawnApiServer(layout, env);
  const ready = async (): Promise<void> => waitUntilReady(layout, [etcd, apiServer]);
  const stop = async (): Promise<void> => {
    await Promise.all([apiServer.stop("SIGKILL"), etcd.stop("SIGKILL")]);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await ready();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    ...identities(layout),
    get pid() {
      return apiServer.pid;
    },
    etcdUrl: etcdUrlOf(layout),
    kubectl: kubectlFor({ kubeconfig: layout.kubeconfig, cacheFolder: join(folder, "kubectl-cache") }),
    kill: () => apiServer.stop("SIGKILL"),
    async restart() {
      if (apiServer.running) await apiServer.stop("SIGKILL");
      apiServer = spawnApiServer(layout, env);
      await ready();
    },
    stop,
  };
}

type Identities = Pick<ApiServer, keyof ApiServer & (keyof Layout | `client${string}` | `credentials${string}`)>;

function identities({ url, authority, kubeconfig, adminToken }: Layout): Identities {
  // The API server verifies the signatures of a client certificate for each request, but only looks up a token.
  const credentials = staticCredentials({ server: url, token: adminToken, tls: { ca: authority.cert } });
  const credentialsFor = async ({ name, group }: User): Promise<Credentials> => {
    const pair = await authority.issue({ commonName: name, ...(group !== undefined && { organization: group }) });
    return staticCredentials({ server: url, tls: { ca: authority.cert, ...pair } });
  };
  return {
    url,
    authority,
    kubeconfig,
    credentials,
    credentialsFor,
    client: connect(credentials, patience),
    clientFor: async (user, options) => connect(await credentialsFor(user), { ...patience, ...options }),
  };
}

/** The servers of a killed test run end with it, but their folders remain. */
async function removeLeftovers(): Promise<void> {
  const names = (await readdir(tmpdir())).filter((name) => name.startsWith(folderPrefix));
  const dead = names.filter((name) => !isAlive(Number.parseInt(name.slice(folderPrefix.length), 10)));
  await Promise.all(dead.map((name) => rm(join(tmpdir(), name), { recursive: true, force: true })));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

interface Layout {
  readonly folder: string;
  readonly url: string;
  readonly port: number;
  readonly etcdPort: number;
  readonly etcdPeerPort: number;
  readonly authority: Authority;
  readonly admin: KeyPair;
  readonly adminToken: string;
  readonly kubeconfig: string;
}

async function prepare(folder: string): Promise<Layout> {
  const authority = await createCa("testkit");
  const [server, admin, serviceAccounts] = await Promise.all([
    authority.issue({ commonName: "kube-apiserver", ips: ["127.0.0.1"], dns: ["localhost", "kubernetes.default.svc"] }),
    authority.issue({ commonName: "admin", organization: "system:masters" }),
    authority.issue({ commonName: "service-accounts" }),
  ]);
  await Promise.all([
    ...["etcd", "kube-apiserver"].map((name) => symlink(toolPath("kube"), join(folder, name))),
    ...Object.entries({ authority, server, admin, serviceAccounts }).flatMap(([name, pair]) => [
      Bun.write(join(folder, `${name}.crt`), pair.cert),
      Bun.write(join(folder, `${name}.key`), pair.key),
    ]),
  ]);
  const [port, etcdPort, etcdPeerPort] = [await freePort(), await freePort(), await freePort()];
  const url = `https://127.0.0.1:${port}`;
  const kubeconfig = join(folder, "kubeconfig");
  await Bun.write(kubeconfig, adminKubeconfig(url));
  const adminToken = crypto.randomUUID();
  await Bun.write(join(folder, "tokens.csv"), `${adminToken},admin,admin,system:masters\n`);
  return { folder, url, port, etcdPort, etcdPeerPort, authority, admin, adminToken, kubeconfig };
}

/** Paths are relative to the folder of the file. */
function adminKubeconfig(server: string): string {
  return kubeconfigText({
    cluster: { server, "certificate-authority": "authority.crt" },
    user: { "client-certificate": "admin.crt", "client-key": "admin.key" },
  });
}

const etcdUrlOf = ({ etcdPort }: Layout): string => `http://127.0.0.1:${etcdPort}`;

function etcdCommand(layout: Layout): string[] {
  const client = etcdUrlOf(layout);
  const peer = `http://127.0.0.1:${layout.etcdPeerPort}`;
  return [
    join(layout.folder, "etcd"),
    `--data-dir=${join(layout.folder, "etcd-data")}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    "--unsafe-no-fsync",
    "--log-level=warn",
  ];
}

function spawnApiServer(layout: Layout, env: Readonly<Record<string, string>>): ChildProcess {
  const file = (name: string): string => join(layout.folder, name);
  const command = [
    file("kube-apiserver"),
    `--etcd-servers=${etcdUrlOf(layout)}`,
    `--secure-port=${layout.port}`,
    "--bind-address=127.0.0.1",
    "--advertise-address=127.0.0.1",
    "--endpoint-reconciler-type=none",
    `--tls-cert-file=${file("server.crt")}`,
    `--tls-private-key-file=${file("server.key")}`,
    `--client-ca-file=${file("authority.crt")}`,
    `--token-auth-file=${file("tokens.csv")}`,
    `--service-account-key-file=${file("serviceAccounts.crt")}`,
    `--service-account-signing-key-file=${file("serviceAccounts.key")}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    "--service-cluster-ip-range=10.96.0.0/16",
    "--authorization-mode=RBAC",
    // Without a controller manager there are no default service accounts, which pods would need.
    "--disable-admission-plugins=ServiceAccount",
    // Like OpenShift: setting blockOwnerDeletion requires permission to update the owner's finalizers.
    "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
    "--allow-privileged=true",
    "--profiling=false",
  ];
  return spawnChild({ command, logFile: file("kube-apiserver.log"), env });
}

async function waitUntilReady(layout: Layout, children: readonly ChildProcess[]): Promise<void> {
  const tls = { ca: layout.authority.cert, cert: layout.admin.cert, key: layout.admin.key };
  const isReady = async (): Promise<boolean> => {
    const response = await fetch(`${layout.url}/readyz`, { tls, signal: AbortSignal.timeout(5000) });
    return response.ok;
  };
  const stopped = Promise.race(children.map(async (child) => child.exited.then(() => child)));
  const failed = await Promise.race([
    stopped,
    waitFor(isReady, { timeoutMs: readyTimeoutMs, what: "the API server to be ready" }),
  ]);
  if (failed !== true) throw new Error(`the API server did not start:\n${await failed.log()}`);
}
