/** Git repositories behind real servers: every way to sign in, every kind of revision, and what goes wrong with them. */
import { beforeAll, expect, test } from "bun:test";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { createKey, serveGit, type GitServer, type TestRepository } from "@pko/agent/testing";
import { createAuthority, network } from "@pko/cluster";

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
  newConfigMap,
  newSecret,
  newStack,
  podUid,
  podWith,
  requestReconcile,
  stackUntil,
  stalledBy,
  useScene,
  yamlProject,
} from "../harness.ts";
import { githubStandIn } from "./github.ts";
import { startSshServer, type SshServer } from "./ssh-server.ts";

const slow = 600_000;
const scene = useScene("git", { operator: async () => ({ env: { SSL_CERT_FILE: await serveMounted() } }) });

const github = githubStandIn();
const canaries = { token: "canary-access-token", password: "canary-password", passphrase: "canary passphrase" };
/** What opens each repository of the guarded server. */
const guards: Record<string, (credentials: string) => boolean> = {
  "/token.git": (credentials) => credentials === `git:${canaries.token}`,
  "/basic.git": (credentials) => credentials === `deployer:${canaries.password}`,
  "/app.git": (credentials) => github.opens(credentials),
  "/public.git": () => true,
};

const [host, other] = [createKey(scene.folder, "host"), createKey(scene.folder, "other")];
const [plain, locked] = [createKey(scene.folder, "plain"), createKey(scene.folder, "locked", canaries.passphrase)];

/** One server of an authority that a Secret names, one of an authority that the environment names. */
let guarded: GitServer;
let mounted: GitServer;
let ssh: SshServer;
let authority: string;
let mountedAuthority: string;

beforeAll(async () => {
  [authority, guarded] = await servePrivately(guard);
  const { namespace, git } = scene;
  ssh = await startSshServer({ namespace, repositories: git.folder, host, users: [plain, locked] });
}, slow);

/** Returns the file of its authority's certificate. */
async function serveMounted(): Promise<string> {
  [mountedAuthority, mounted] = await servePrivately();
  const file = join(scene.folder, "authority.pem");
  writeFileSync(file, mountedAuthority);
  return file;
}

async function servePrivately(intercept?: (request: Request) => Response | undefined): Promise<[string, GitServer]> {
  const own = await createAuthority("a company's own");
  const tls = await own.issue({ commonName: "git", ips: [network.machine] });
  const server = serveGit(scene.git.folder, { hostname: network.machine, tls, ...(intercept && { intercept }) });
  scene.defer(() => server.stop());
  return [own.cert, server];
}

function guard(request: Request): Response | undefined {
  const answer = github.answer(request);
  if (answer) return answer;
  const { pathname } = new URL(request.url);
  const [, encoded = ""] = request.headers.get("authorization")?.split(" ") ?? [];
  const opens = Object.entries(guards).find(([path]) => pathname.startsWith(path))?.[1];
  if (opens?.(atob(encoded))) return undefined;
  return new Response(null, { status: 401, headers: { "www-authenticate": 'Basic realm="git"' } });
}

test.concurrent(
  "https: a token, a user and password, and a GitHub App open a server of a private authority; each lack is told",
  async () => {
    const commits = Object.fromEntries(
      ["token", "basic", "app", "public"].map((name) => [name, scene.git.create(name).commit(yamlProject(name))]),
    );
    const guardedUrl = (name: string): string => `https://${network.machine}:${guarded.port}/${name}.git`;
    const withToken = {
      projectRepo: guardedUrl("token"),
      branch: "main",
      gitAuth: { accessToken: fromSecret("access", "token") },
    };
    await deploy("private", withToken);
    await stalledBy(scene, "private", { words: "there is no Secret access" });
    await secret("access", { token: canaries.token });
    await requestReconcile(scene, "private", "without the authority");
    await stalledBy(scene, "private", { words: "its authority's certificate under the key ca.crt" });
    await secret("access", { token: "stale", "ca.crt": authority });
    await requestReconcile(scene, "private", "with a stale token");
    await stalledBy(scene, "private", { words: "the repository refuses the credentials" });
    // Nobody asks for it: the operator looks again by itself.
    await secret("access", { token: `${canaries.token}\n`, "ca.crt": authority });
    await stackUntil(scene, "private", isAt(commits["token"]));
    const pod = await podUid(scene, "private");

    await secret("login", { name: "deployer", word: canaries.password, "ca.crt": authority });
    const basicAuth = { userName: fromSecret("login", "name"), password: fromSecret("login", "word") };
    await deploy("private", { projectRepo: guardedUrl("basic"), branch: "main", gitAuth: { basicAuth } });
    await stackUntil(scene, "private", isAt(commits["basic"]));

    await secret("former", { accessToken: canaries.token, "ca.crt": authority });
    await deploy("private", { projectRepo: guardedUrl("token"), branch: "main", gitAuthSecret: "former" });
    await stackUntil(scene, "private", isAt(commits["token"]));

    await secret("only-ca", { "ca.crt": authority });
    await deploy("private", { projectRepo: guardedUrl("public"), branch: "main", gitAuthSecret: "only-ca" });
    await stackUntil(scene, "private", isAt(commits["public"]));

    await secret("github", { app: github.appId, at: "1", pem: github.privateKey, "ca.crt": authority });
    const githubApp = {
      appID: fromSecret("github", "app"),
      installationID: fromSecret("github", "at"),
      privateKey: fromSecret("github", "pem"),
    };
    await deploy("private", { projectRepo: guardedUrl("app"), branch: "main", gitAuth: { githubApp } });
    await stalledBy(scene, "private", { words: "GitHub knows no such installation of the App" });
    await secret("github", {
      app: github.appId,
      at: github.installationId,
      pem: github.privateKey,
      "ca.crt": authority,
    });
    await requestReconcile(scene, "private", "with the installation");
    const last = await stackUntil(scene, "private", isAt(commits["app"]));
    expect(last.status?.outputs).toEqual({ text: "app" });
    // One token serves the operator's look and the workspace's fetch.
    expect(github.tokens).toHaveLength(1);
    expect(await podUid(scene, "private")).toBe(pod);

    const events = await kubectl(["get", "events", ...at(scene), "--output=json"]);
    expect(events).toContain("StackGitAuthenticationFailure");
    const sinks = [events, await scene.operator.log(), JSON.stringify(last), await agentLog(scene, "private")].join(
      "\n",
    );
    for (const canary of [canaries.token, canaries.password, ...github.tokens]) expect(sinks).not.toContain(canary);
  },
  slow,
);

test.concurrent(
  "https: an authority that is mounted and named by SSL_CERT_FILE is trusted, also in the template's former fetch container",
  async () => {
    const commit = scene.git.create("mounted").commit(yamlProject("mounted"));
    await applyTo(scene, newConfigMap("authority", { "authority.pem": mountedAuthority }));
    const fetch = {
      name: "fetch",
      env: [{ name: "SSL_CERT_FILE", value: "/authority/authority.pem" }],
      volumeMounts: [{ name: "authority", mountPath: "/authority" }],
    };
    const volumes = [{ name: "authority", configMap: { name: "authority" } }];
    const workspaceTemplate = podWith({ initContainers: [fetch], volumes });
    const projectRepo = `https://${network.machine}:${mounted.port}/mounted.git`;
    await deploy("mounted", { projectRepo, branch: "main", workspaceTemplate });
    await stackUntil(scene, "mounted", isAt(commit));
  },
  slow,
);

test.concurrent(
  "ssh: a host must be known by its key, and a locked key needs its passphrase",
  async () => {
    const commit = scene.git.create("sealed").commit(yamlProject("sealed"));
    const given = { key: locked.privateKey, passphrase: canaries.passphrase, known_hosts: ssh.knownHosts(host) };
    const sshAuth = { sshPrivateKey: fromSecret("ssh", "key"), password: fromSecret("ssh", "passphrase") };
    const spec = { projectRepo: ssh.url("sealed"), branch: "main", gitAuth: { sshAuth } };
    await secret("ssh", { ...given, known_hosts: ssh.knownHosts(other) });
    await deploy("sealed", spec);
    await stalledBy(scene, "sealed", { words: "another key than known_hosts has for it" });
    // Without lines of its own, only the big forges are known.
    await secret("ssh", { key: given.key, passphrase: given.passphrase });
    await requestReconcile(scene, "sealed", "an unknown host");
    await stalledBy(scene, "sealed", { words: "the ssh host's key is not in known_hosts" });
    await secret("ssh", { ...given, passphrase: "another" });
    await requestReconcile(scene, "sealed", "a wrong passphrase");
    await stalledBy(scene, "sealed", { words: "the key's passphrase is another" });
    await secret("ssh", { ...given, key: other.privateKey });
    await requestReconcile(scene, "sealed", "a key that the server does not know");
    await stalledBy(scene, "sealed", { words: "the server refuses the ssh key" });
    await secret("ssh", given);
    await stackUntil(scene, "sealed", isAt(commit));

    // The form without a URL, an unlocked key, and the former kind of Secret.
    const next = scene.git.create("scp").commit(yamlProject("scp"));
    await secret("deploy-key", { sshPrivateKey: plain.privateKey, known_hosts: ssh.knownHosts(host) });
    await deploy("sealed", { projectRepo: ssh.scp("scp"), branch: "main", gitAuthSecret: "deploy-key" });
    await stackUntil(scene, "sealed", isAt(next));
    await deploy("sealed", { projectRepo: ssh.scp("missing"), branch: "main", gitAuthSecret: "deploy-key" });
    await stalledBy(scene, "sealed", { words: "the repository is not there" });
    const sinks = [await scene.operator.log(), await agentLog(scene, "sealed")].join("\n");
    expect(sinks).not.toContain(canaries.passphrase);
  },
  slow,
);

test.concurrent(
  "a branch by either name, a tag by either field, a commit, another ref; a folder of a monorepo, with and without history",
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
    expect(await history("mono")).toBe(1);
    await follow({ branch: "refs/heads/main" });
    expect(await text(first)).toBe("web 1");
    await follow({ tag: "v2" });
    expect(await text(second)).toBe("web 2");
    expect(await history("mono")).toBe(2);
    await follow({ branch: "refs/tags/plain" });
    await text(first);
    await follow({ branch: "refs/pull/7/head" });
    await text(second);
    await follow({ commit: first });
    expect(await text(first)).toBe("web 1");

    // A commit that touches another folder is a new revision all the same, and changes nothing.
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
  "a branch, a folder or a repository that is not there is told, and recovers by itself; a branch that was rewritten is followed",
  async () => {
    const repository = scene.git.create("troubled");
    const first = repository.commit(yamlProject("one"));
    await deploy("troubled", {
      projectRepo: scene.git.url("troubled"),
      branch: "later",
      repoDir: "infra",
      resyncFrequencySeconds: 60,
    });
    await stalledBy(scene, "troubled", { words: "the repository has no refs/heads/later and no refs/tags/later" });
    repository.git("branch", "later", first);
    await requestReconcile(scene, "troubled", "the branch is there");
    await stalledBy(scene, "troubled", { reason: "WorkspaceFailed", words: 'the source has no folder "infra"' });
    const infra = { "infra/Pulumi.yaml": yamlProject("two")["Pulumi.yaml"] ?? "" };
    const second = repository.commit(infra, "later");
    await requestReconcile(scene, "troubled", "the folder is there");
    await stackUntil(scene, "troubled", isAt(second));

    // Rewritten: what was deployed is no longer part of the branch's history.
    repository.git("update-ref", "-d", "refs/heads/later");
    const rewritten = repository.commit({ ...infra, note: "instead" }, "later");
    repository.git("update-ref", "refs/heads/later", orphan(repository, rewritten));
    const tip = repository.git("rev-parse", "refs/heads/later");
    await requestReconcile(scene, "troubled", "rewritten");
    await stackUntil(scene, "troubled", isAt(tip));

    const gone = `${repository.folder}.gone`;
    renameSync(repository.folder, gone);
    await requestReconcile(scene, "troubled", "gone");
    await stalledBy(scene, "troubled", {
      words: "the repository is not there, or may not be seen with these credentials",
    });
    const count = (await listUpdates(scene, "troubled")).length;
    renameSync(gone, repository.folder);
    // Without a request: the next poll finds it.
    await stackUntil(scene, "troubled", isReady);
    expect((await listUpdates(scene, "troubled")).length).toBeLessThanOrEqual(count + 1);
  },
  slow,
);

/** A commit with the same files, and no parent. */
function orphan(repository: TestRepository, commit: string): string {
  const identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
  return repository.git(...identity, "commit-tree", "-m", "rewritten", `${commit}^{tree}`);
}

/** Replaced as a whole: keys that are not given are gone. */
async function secret(name: string, data: Record<string, string>): Promise<void> {
  await kubectl(["delete", "secret", name, ...at(scene), "--ignore-not-found"]);
  await kubectl(["create", ...at(scene), "-f", "-"], { input: JSON.stringify(newSecret(name, data)) });
}

async function deploy(name: string, spec: object): Promise<void> {
  await applyTo(scene, newStack(name, spec));
}

/** How many commits the workspace has. */
async function history(stack: string): Promise<number> {
  return Number(await execInPod(scene, stack, "cd /share/workspace && git rev-list --count HEAD"));
}
