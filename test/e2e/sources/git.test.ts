/** Git repositories on real servers: all ways to sign in, all kinds of revisions, and all kinds of errors. */
import { beforeAll, expect, test } from "bun:test";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { createKey, serveGit, type GitServer, type TestRepository } from "@pko/agent/testing";
import { createCa } from "@pko/cluster";

import {
  agentLog,
  applyTo,
  at,
  execInPod,
  fromSecret,
  isAt,
  isReady,
  kubectl,
  listUpdates,
  machineAddress,
  newConfigMap,
  newSecret,
  newStack,
  podUid,
  podWith,
  requestReconcile,
  stackUntil,
  stalledBy,
  untilEvents,
  useScene,
  yamlProject,
} from "../harness.ts";
import { fakeGitHub } from "./github.ts";
import { startSshServer, type SshServer } from "./ssh-server.ts";

const slow = 600_000;
const scene = useScene("git", { operator: async () => ({ env: { SSL_CERT_FILE: await serveMounted() } }) });

const github = fakeGitHub();
const canaries = { token: "canary-access-token", password: "canary-password", passphrase: "canary passphrase" };
/** The credentials that each repository of the private server accepts. */
const isAuthorized: Record<string, (credentials: string) => boolean> = {
  "/token.git": (credentials) => credentials === `git:${canaries.token}`,
  "/basic.git": (credentials) => credentials === `deployer:${canaries.password}`,
  "/app.git": (credentials) => github.isAuthorized(credentials),
  "/public.git": () => true,
};

const [host, other] = [createKey(scene.folder, "host"), createKey(scene.folder, "other")];
const [plain, encrypted] = [
  createKey(scene.folder, "plain"),
  createKey(scene.folder, "encrypted", canaries.passphrase),
];

/** The CA of one server is in a Secret, the CA of the other in a file that SSL_CERT_FILE names. */
let privateServer: GitServer;
let mounted: GitServer;
let ssh: SshServer;
let ca: string;
let mountedCa: string;

beforeAll(async () => {
  [ca, privateServer] = await serveWithPrivateCa(authorize);
  const { namespace, git } = scene;
  ssh = await startSshServer({ namespace, repositories: git.folder, host, users: [plain, encrypted] });
}, slow);

/** Returns the file with the CA certificate. */
async function serveMounted(): Promise<string> {
  [mountedCa, mounted] = await serveWithPrivateCa();
  const file = join(scene.folder, "ca.pem");
  writeFileSync(file, mountedCa);
  return file;
}

async function serveWithPrivateCa(
  intercept?: (request: Request) => Response | undefined,
): Promise<[string, GitServer]> {
  const authority = await createCa("a private CA");
  const tls = await authority.issue({ commonName: "git", ips: [machineAddress] });
  const server = serveGit(scene.git.folder, { hostname: machineAddress, tls, ...(intercept && { intercept }) });
  scene.defer(() => server.stop());
  return [authority.cert, server];
}

function authorize(request: Request): Response | undefined {
  const response = github.handle(request);
  if (response) return response;
  const { pathname } = new URL(request.url);
  const [, encoded = ""] = request.headers.get("authorization")?.split(" ") ?? [];
  const accepts = Object.entries(isAuthorized).find(([path]) => pathname.startsWith(path))?.[1];
  if (accepts?.(atob(encoded))) return undefined;
  return new Response(null, { status: 401, headers: { "www-authenticate": 'Basic realm="git"' } });
}

test.concurrent(
  "HTTPS with a private CA accepts a token, a user with password, and a GitHub App; missing and wrong credentials are reported",
  async () => {
    const commits = Object.fromEntries(
      ["token", "basic", "app", "public"].map((name) => [name, scene.git.create(name).commit(yamlProject(name))]),
    );
    const privateUrl = (name: string): string => `https://${machineAddress}:${privateServer.port}/${name}.git`;
    const withToken = {
      projectRepo: privateUrl("token"),
      branch: "main",
      gitAuth: { accessToken: fromSecret("access", "token") },
    };
    await deploy("private", withToken);
    await stalledBy(scene, "private", { message: "there is no Secret access" });
    await replaceSecret("access", { token: canaries.token });
    await requestReconcile(scene, "private", "without the CA");
    await stalledBy(scene, "private", { message: "add its CA certificate under the key ca.crt" });
    await replaceSecret("access", { token: "stale", "ca.crt": ca });
    await requestReconcile(scene, "private", "with a stale token");
    await stalledBy(scene, "private", { message: "the Git server rejects the credentials" });
    // The operator retries without a request.
    await replaceSecret("access", { token: `${canaries.token}\n`, "ca.crt": ca });
    await stackUntil(scene, "private", isAt(commits["token"]));
    const pod = await podUid(scene, "private");

    await replaceSecret("login", { name: "deployer", password: canaries.password, "ca.crt": ca });
    const basicAuth = { userName: fromSecret("login", "name"), password: fromSecret("login", "password") };
    await deploy("private", { projectRepo: privateUrl("basic"), branch: "main", gitAuth: { basicAuth } });
    await stackUntil(scene, "private", isAt(commits["basic"]));

    await replaceSecret("legacy", { accessToken: canaries.token, "ca.crt": ca });
    await deploy("private", { projectRepo: privateUrl("token"), branch: "main", gitAuthSecret: "legacy" });
    await stackUntil(scene, "private", isAt(commits["token"]));

    await replaceSecret("only-ca", { "ca.crt": ca });
    await deploy("private", { projectRepo: privateUrl("public"), branch: "main", gitAuthSecret: "only-ca" });
    await stackUntil(scene, "private", isAt(commits["public"]));

    await replaceSecret("github", { app: github.appId, at: "1", pem: github.privateKey, "ca.crt": ca });
    const githubApp = {
      appID: fromSecret("github", "app"),
      installationID: fromSecret("github", "at"),
      privateKey: fromSecret("github", "pem"),
    };
    await deploy("private", { projectRepo: privateUrl("app"), branch: "main", gitAuth: { githubApp } });
    await stalledBy(scene, "private", { message: "GitHub has no such installation of the App" });
    await replaceSecret("github", {
      app: github.appId,
      at: github.installationId,
      pem: github.privateKey,
      "ca.crt": ca,
    });
    await requestReconcile(scene, "private", "with the installation");
    const last = await stackUntil(scene, "private", isAt(commits["app"]));
    expect(last.status?.outputs).toEqual({ text: "app" });
    // The operator and the workspace use the same token.
    expect(github.tokens).toHaveLength(1);
    expect(await podUid(scene, "private")).toBe(pod);

    await untilEvents(scene, "private", "StackGitAuthenticationFailure");
    const events = await kubectl(["get", "events", ...at(scene), "--output=json"]);
    const sinks = [events, await scene.operator.log(), JSON.stringify(last), await agentLog(scene, "private")].join(
      "\n",
    );
    for (const canary of [canaries.token, canaries.password, ...github.tokens]) expect(sinks).not.toContain(canary);
  },
  slow,
);

test.concurrent(
  "HTTPS trusts a mounted CA that SSL_CERT_FILE names, also in the legacy fetch container of the template",
  async () => {
    const commit = scene.git.create("mounted").commit(yamlProject("mounted"));
    await applyTo(scene, newConfigMap("ca", { "ca.pem": mountedCa }));
    const fetch = {
      name: "fetch",
      env: [{ name: "SSL_CERT_FILE", value: "/ca/ca.pem" }],
      volumeMounts: [{ name: "ca", mountPath: "/ca" }],
    };
    const volumes = [{ name: "ca", configMap: { name: "ca" } }];
    const workspaceTemplate = podWith({ initContainers: [fetch], volumes });
    const projectRepo = `https://${machineAddress}:${mounted.port}/mounted.git`;
    await deploy("mounted", { projectRepo, branch: "main", workspaceTemplate });
    await stackUntil(scene, "mounted", isAt(commit));
  },
  slow,
);

test.concurrent(
  "SSH checks the host key, and an encrypted key needs its passphrase",
  async () => {
    const commit = scene.git.create("sealed").commit(yamlProject("sealed"));
    const given = { key: encrypted.privateKey, passphrase: canaries.passphrase, known_hosts: ssh.knownHosts(host) };
    const sshAuth = { sshPrivateKey: fromSecret("ssh", "key"), password: fromSecret("ssh", "passphrase") };
    const spec = { projectRepo: ssh.url("sealed"), branch: "main", gitAuth: { sshAuth } };
    await replaceSecret("ssh", { ...given, known_hosts: ssh.knownHosts(other) });
    await deploy("sealed", spec);
    await stalledBy(scene, "sealed", { message: "key differs from the one in known_hosts" });
    // Without known_hosts, only the large Git hosts are known.
    await replaceSecret("ssh", { key: given.key, passphrase: given.passphrase });
    await requestReconcile(scene, "sealed", "an unknown host");
    await stalledBy(scene, "sealed", { message: "the SSH host's key is not in known_hosts" });
    await replaceSecret("ssh", { ...given, passphrase: "another" });
    await requestReconcile(scene, "sealed", "a wrong passphrase");
    await stalledBy(scene, "sealed", { message: "the passphrase is wrong" });
    await replaceSecret("ssh", { ...given, key: other.privateKey });
    await requestReconcile(scene, "sealed", "an unknown key");
    await stalledBy(scene, "sealed", { message: "the server rejects the SSH key" });
    await replaceSecret("ssh", given);
    await stackUntil(scene, "sealed", isAt(commit));

    // The scp-like address, an unencrypted key, and the legacy kind of Secret.
    const next = scene.git.create("scp").commit(yamlProject("scp"));
    await replaceSecret("deploy-key", { sshPrivateKey: plain.privateKey, known_hosts: ssh.knownHosts(host) });
    await deploy("sealed", { projectRepo: ssh.scp("scp"), branch: "main", gitAuthSecret: "deploy-key" });
    await stackUntil(scene, "sealed", isAt(next));
    await deploy("sealed", { projectRepo: ssh.scp("missing"), branch: "main", gitAuthSecret: "deploy-key" });
    await stalledBy(scene, "sealed", { message: "the repository does not exist" });
    const sinks = [await scene.operator.log(), await agentLog(scene, "sealed")].join("\n");
    expect(sinks).not.toContain(canaries.passphrase);
  },
  slow,
);

test.concurrent(
  "a Stack follows a branch, tag, commit or other ref of a folder in a monorepo, with and without history",
  async () => {
    const repository = scene.git.create("mono");
    const files = (web: string, api: string): Record<string, string> => ({
      "apps/web/Pulumi.yaml": yamlProject(web)["Pulumi.yaml"] ?? "",
      "apps/api/Pulumi.yaml": yamlProject(api)["Pulumi.yaml"] ?? "",
    });
    const first = repository.commit(files("web 1", "api 1"));
    const second = repository.commit(files("web 2", "api 1"), "release/1");
    repository.git("tag", "--no-sign", "plain", first);
    repository.git("-c", "user.name=t", "-c", "user.email=t@example.com", "tag", "-a", "-m", "annotated", "v2", second);
    repository.git("update-ref", "refs/pull/7/head", second);
    const follow = async (revision: object, more: object = {}): Promise<void> =>
      await deploy("mono", { projectRepo: scene.git.url("mono"), repoDir: "apps/web/", ...revision, ...more });
    const text = async (commit: string): Promise<unknown> =>
      (await stackUntil(scene, "mono", isAt(commit))).status?.outputs?.["text"];

    await follow({ branch: "release/1" }, { shallow: true });
    expect(await text(second)).toBe("web 2");
    const pod = await podUid(scene, "mono");
    expect(await countCommits("mono")).toBe(1);
    await follow({ branch: "refs/heads/main" });
    expect(await text(first)).toBe("web 1");
    await follow({ tag: "v2" });
    expect(await text(second)).toBe("web 2");
    expect(await countCommits("mono")).toBe(2);
    await follow({ branch: "refs/tags/plain" });
    await text(first);
    await follow({ branch: "refs/pull/7/head" });
    await text(second);
    await follow({ commit: first });
    expect(await text(first)).toBe("web 1");

    // A commit in another folder is a new revision, but changes no resources.
    await follow({ branch: "main" }, { repoDir: "apps/web" });
    await stackUntil(scene, "mono", isReady);
    const elsewhere = repository.commit(files("web 1", "api 2"));
    await requestReconcile(scene, "mono", "another folder has changed");
    const followed = await stackUntil(scene, "mono", isAt(elsewhere));
    expect(followed.status?.lastUpdate?.changes).toEqual({ same: 1 });
    expect(followed.status?.outputs).toEqual({ text: "web 1" });
    expect(await podUid(scene, "mono")).toBe(pod);
  },
  slow,
);

test.concurrent(
  "a missing branch, folder or repository is reported until it exists, and a rewritten branch is followed",
  async () => {
    const repository = scene.git.create("troubled");
    const first = repository.commit(yamlProject("one"));
    await deploy("troubled", {
      projectRepo: scene.git.url("troubled"),
      branch: "later",
      repoDir: "infra",
      resyncFrequencySeconds: 10,
    });
    await stalledBy(scene, "troubled", { message: "the repository has no refs/heads/later and no refs/tags/later" });
    repository.git("branch", "later", first);
    await requestReconcile(scene, "troubled", "the branch exists");
    await stalledBy(scene, "troubled", { reason: "WorkspaceFailed", message: 'the source has no folder "infra"' });
    const infra = { "infra/Pulumi.yaml": yamlProject("two")["Pulumi.yaml"] ?? "" };
    const second = repository.commit(infra, "later");
    await requestReconcile(scene, "troubled", "the folder exists");
    await stackUntil(scene, "troubled", isAt(second));

    // The deployed commit is no longer in the history of the branch.
    repository.git("update-ref", "-d", "refs/heads/later");
    const rewritten = repository.commit({ ...infra, note: "instead" }, "later");
    repository.git("update-ref", "refs/heads/later", commitWithoutParent(repository, rewritten));
    const tip = repository.git("rev-parse", "refs/heads/later");
    await requestReconcile(scene, "troubled", "rewritten");
    await stackUntil(scene, "troubled", isAt(tip));

    const moved = `${repository.folder}.moved`;
    renameSync(repository.folder, moved);
    await requestReconcile(scene, "troubled", "the repository is missing");
    await stalledBy(scene, "troubled", {
      message: "the repository does not exist, or these credentials have no access to it",
    });
    const count = (await listUpdates(scene, "troubled")).length;
    renameSync(moved, repository.folder);
    // The next poll finds it, without a request.
    await stackUntil(scene, "troubled", isReady);
    expect((await listUpdates(scene, "troubled")).length).toBeLessThanOrEqual(count + 1);
  },
  slow,
);

/** Creates a commit with the same files and no parent. */
function commitWithoutParent(repository: TestRepository, commit: string): string {
  const identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
  return repository.git(...identity, "commit-tree", "-m", "rewritten", `${commit}^{tree}`);
}

/** Replaces the whole Secret, so that no old keys remain. */
async function replaceSecret(name: string, data: Record<string, string>): Promise<void> {
  await kubectl(["delete", "secret", name, ...at(scene), "--ignore-not-found"]);
  await kubectl(["create", ...at(scene), "-f", "-"], { input: JSON.stringify(newSecret(name, data)) });
}

async function deploy(name: string, spec: object): Promise<void> {
  await applyTo(scene, newStack(name, spec));
}

/** The number of commits in the workspace's clone. */
async function countCommits(stack: string): Promise<number> {
  return Number(await execInPod(scene, stack, "cd /share/workspace && git rev-list --count HEAD"));
}
