/** Git repositories behind real servers: every way to sign in, every kind of revision, and what goes wrong with them. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createKey, createRepository, serveGit, type GitServer, type TestRepository } from "@pko/agent/testing";
import { reconcileRequestAnnotation, type Stack } from "@pko/api";
import { createAuthority, network } from "@pko/cluster";

import {
  apply,
  clearNamespace,
  isReady,
  kubectl,
  newNamespace,
  onFileBackend,
  stackUntil,
  startOperatorWith,
  updatesOf,
  type Operator,
  type Place,
} from "../harness.ts";
import { yamlProject } from "../operator/programs.ts";
import { githubStandIn } from "./github.ts";
import { startSshServer, type SshServer } from "./ssh-server.ts";

const slow = 600_000;
const folder = mkdtempSync(join(tmpdir(), "pko-git-"));
const repositories = join(folder, "repositories");
mkdirSync(repositories, { mode: 0o755 });

const github = githubStandIn();
const canaries = { token: "canary-access-token", password: "canary-password", passphrase: "canary passphrase" };
/** What opens each repository of the guarded server. */
const guards: Record<string, (credentials: string) => boolean> = {
  "/token.git": (credentials) => credentials === `git:${canaries.token}`,
  "/basic.git": (credentials) => credentials === `deployer:${canaries.password}`,
  "/app.git": (credentials) => github.opens(credentials),
};

const [host, other] = [createKey(folder, "host"), createKey(folder, "other")];
const [plain, locked] = [createKey(folder, "plain"), createKey(folder, "locked", canaries.passphrase)];

let operator: Operator;
let place: Place;
let open: GitServer;
/** One server of an authority that a Secret names, one of an authority that the environment names. */
let guarded: GitServer;
let mounted: GitServer;
let ssh: SshServer;
let authority: string;
let mountedAuthority: string;

beforeAll(async () => {
  const namespace = await newNamespace("git");
  [authority, guarded] = await servePrivately(guard);
  [mountedAuthority, mounted] = await servePrivately();
  open = serveGit(repositories, { hostname: network.machine });
  const file = join(folder, "authority.pem");
  writeFileSync(file, mountedAuthority);
  operator = await startOperatorWith({ namespaces: [namespace], env: { SSL_CERT_FILE: file } });
  place = { client: operator.client, namespace };
  ssh = await startSshServer({ namespace, repositories, host, users: [plain, locked] });
}, slow);

afterAll(async () => {
  await clearNamespace(place.namespace);
  await Promise.all([open.stop(), guarded.stop(), mounted.stop(), operator.stop()]);
});

async function servePrivately(intercept?: (request: Request) => Response | undefined): Promise<[string, GitServer]> {
  const own = await createAuthority("a company's own");
  const tls = await own.issue({ commonName: "git", ips: [network.machine] });
  return [own.cert, serveGit(repositories, { hostname: network.machine, tls, ...(intercept && { intercept }) })];
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
      ["token", "basic", "app"].map((name) => [name, createRepository(repositories, name).commit(yamlProject(name))]),
    );
    const at = (name: string): string => `https://${network.machine}:${guarded.port}/${name}.git`;
    const withToken = { projectRepo: at("token"), branch: "main", gitAuth: { accessToken: key("access", "token") } };
    await deploy("private", withToken);
    await told("private", "there is no Secret access");
    await secret("access", { token: canaries.token });
    await wake("private", "without the authority");
    await told("private", "its authority's certificate under the key ca.crt");
    await secret("access", { token: "stale", "ca.crt": authority });
    await wake("private", "with a stale token");
    await told("private", "the repository refuses the credentials");
    // Nobody asks for it: the operator looks again by itself.
    await secret("access", { token: `${canaries.token}\n`, "ca.crt": authority });
    await stackUntil(place, "private", isAt(commits["token"]));
    const pod = await podOf("private");

    await secret("login", { name: "deployer", word: canaries.password, "ca.crt": authority });
    const basicAuth = { userName: key("login", "name"), password: key("login", "word") };
    await deploy("private", { projectRepo: at("basic"), branch: "main", gitAuth: { basicAuth } });
    await stackUntil(place, "private", isAt(commits["basic"]));

    await secret("former", { accessToken: canaries.token, "ca.crt": authority });
    await deploy("private", { projectRepo: at("token"), branch: "main", gitAuthSecret: "former" });
    await stackUntil(place, "private", isAt(commits["token"]));

    await secret("github", { app: github.appId, at: "1", pem: github.privateKey, "ca.crt": authority });
    const githubApp = {
      appID: key("github", "app"),
      installationID: key("github", "at"),
      privateKey: key("github", "pem"),
    };
    await deploy("private", { projectRepo: at("app"), branch: "main", gitAuth: { githubApp } });
    await told("private", "GitHub knows no such installation of the App");
    await secret("github", {
      app: github.appId,
      at: github.installationId,
      pem: github.privateKey,
      "ca.crt": authority,
    });
    await wake("private", "with the installation");
    const last = await stackUntil(place, "private", isAt(commits["app"]));
    expect(last.status?.outputs).toEqual({ text: "app" });
    // One token serves the operator's look and the workspace's fetch.
    expect(github.tokens).toHaveLength(1);
    expect(await podOf("private")).toBe(pod);

    const events = await kubectl(["get", "events", "-n", place.namespace, "--output=json"]);
    expect(events).toContain("StackGitAuthenticationFailure");
    const sinks = [events, await operator.log(), JSON.stringify(last), await agentLog("private")].join("\n");
    for (const canary of [canaries.token, canaries.password, ...github.tokens]) expect(sinks).not.toContain(canary);
  },
  slow,
);

test.concurrent(
  "https: an authority that is mounted and named by SSL_CERT_FILE is trusted, also in the template's former fetch container",
  async () => {
    const commit = createRepository(repositories, "mounted").commit(yamlProject("mounted"));
    await apply({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "authority", namespace: place.namespace },
      data: { "authority.pem": mountedAuthority },
    });
    const { podTemplate } = onFileBackend.workspaceTemplate.spec;
    const fetch = {
      name: "fetch",
      env: [{ name: "SSL_CERT_FILE", value: "/authority/authority.pem" }],
      volumeMounts: [{ name: "authority", mountPath: "/authority" }],
    };
    const volumes = [...podTemplate.spec.volumes, { name: "authority", configMap: { name: "authority" } }];
    const spec = { podTemplate: { spec: { ...podTemplate.spec, initContainers: [fetch], volumes } } };
    const projectRepo = `https://${network.machine}:${mounted.port}/mounted.git`;
    await deploy("mounted", { projectRepo, branch: "main", workspaceTemplate: { spec } });
    await stackUntil(place, "mounted", isAt(commit));
  },
  slow,
);

test.concurrent(
  "ssh: a host must be known by its key, and a locked key needs its passphrase",
  async () => {
    const commit = createRepository(repositories, "sealed").commit(yamlProject("sealed"));
    const given = { key: locked.privateKey, passphrase: canaries.passphrase, known_hosts: ssh.knownHosts(host) };
    const sshAuth = { sshPrivateKey: key("ssh", "key"), password: key("ssh", "passphrase") };
    const spec = { projectRepo: ssh.url("sealed"), branch: "main", gitAuth: { sshAuth } };
    await secret("ssh", { ...given, known_hosts: ssh.knownHosts(other) });
    await deploy("sealed", spec);
    await told("sealed", "another key than known_hosts has for it");
    // Without lines of its own, only the big forges are known.
    await secret("ssh", { key: given.key, passphrase: given.passphrase });
    await wake("sealed", "an unknown host");
    await told("sealed", "the ssh host's key is not in known_hosts");
    await secret("ssh", { ...given, passphrase: "another" });
    await wake("sealed", "a wrong passphrase");
    await told("sealed", "the key's passphrase is another");
    await secret("ssh", { ...given, key: other.privateKey });
    await wake("sealed", "a key that the server does not know");
    await told("sealed", "the server refuses the ssh key");
    await secret("ssh", given);
    await stackUntil(place, "sealed", isAt(commit));

    // The form without a URL, an unlocked key, and the former kind of Secret.
    const next = createRepository(repositories, "scp").commit(yamlProject("scp"));
    await secret("deploy-key", { sshPrivateKey: plain.privateKey, known_hosts: ssh.knownHosts(host) });
    await deploy("sealed", { projectRepo: ssh.scp("scp"), branch: "main", gitAuthSecret: "deploy-key" });
    await stackUntil(place, "sealed", isAt(next));
    await deploy("sealed", { projectRepo: ssh.scp("missing"), branch: "main", gitAuthSecret: "deploy-key" });
    await told("sealed", "the repository is not there");
    const sinks = [await operator.log(), await agentLog("sealed")].join("\n");
    expect(sinks).not.toContain(canaries.passphrase);
  },
  slow,
);

test.concurrent(
  "a branch by either name, a tag by either field, a commit, another ref; a folder of a monorepo, with and without history",
  async () => {
    const repository = createRepository(repositories, "mono");
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
      await deploy("mono", { projectRepo: at(repository), repoDir: "apps/web/", ...revision, ...more });
    const text = async (commit: string): Promise<unknown> =>
      (await stackUntil(place, "mono", isAt(commit))).status?.outputs?.["text"];

    await follow({ branch: "release/1" }, { shallow: true });
    expect(await text(second)).toBe("web 2");
    const pod = await podOf("mono");
    expect(await inPod("mono", "git rev-list --count HEAD")).toBe("1");
    await follow({ branch: "refs/heads/main" });
    expect(await text(first)).toBe("web 1");
    await follow({ tag: "v2" });
    expect(await text(second)).toBe("web 2");
    expect(await inPod("mono", "git rev-list --count HEAD")).toBe("2");
    await follow({ branch: "refs/tags/plain" });
    await text(first);
    await follow({ branch: "refs/pull/7/head" });
    await text(second);
    await follow({ commit: first });
    expect(await text(first)).toBe("web 1");

    // A commit that touches another folder is a new revision all the same, and changes nothing.
    await follow({ branch: "main" }, { repoDir: "apps/web" });
    await stackUntil(place, "mono", isReady);
    const elsewhere = repository.commit(files("web 1", "api 2"));
    await wake("mono", "another folder has changed");
    const followed = await stackUntil(place, "mono", isAt(elsewhere));
    expect(followed.status?.lastUpdate?.changes).toEqual({ same: 1 });
    expect(followed.status?.outputs).toEqual({ text: "web 1" });
    expect(await podOf("mono")).toBe(pod);
  },
  slow,
);

test.concurrent(
  "a branch, a folder or a repository that is not there is told, and recovers by itself; a branch that was rewritten is followed",
  async () => {
    const repository = createRepository(repositories, "troubled");
    const first = repository.commit(yamlProject("one"));
    await deploy("troubled", {
      projectRepo: at(repository),
      branch: "later",
      repoDir: "infra",
      resyncFrequencySeconds: 60,
    });
    await told("troubled", "the repository has no refs/heads/later and no refs/tags/later");
    repository.git("branch", "later", first);
    await wake("troubled", "the branch is there");
    await told("troubled", 'the source has no folder "infra"', "WorkspaceFailed");
    const infra = { "infra/Pulumi.yaml": yamlProject("two")["Pulumi.yaml"] ?? "" };
    const second = repository.commit(infra, "later");
    await wake("troubled", "the folder is there");
    await stackUntil(place, "troubled", isAt(second));

    // Rewritten: what was deployed is no longer part of the branch's history.
    repository.git("update-ref", "-d", "refs/heads/later");
    const rewritten = repository.commit({ ...infra, note: "instead" }, "later");
    repository.git("update-ref", "refs/heads/later", orphan(repository, rewritten));
    const tip = repository.git("rev-parse", "refs/heads/later");
    await wake("troubled", "rewritten");
    await stackUntil(place, "troubled", isAt(tip));

    const gone = `${repository.folder}.gone`;
    renameSync(repository.folder, gone);
    await wake("troubled", "gone");
    await told("troubled", "the repository is not there, or may not be seen with these credentials");
    const count = (await updatesOf(place, "troubled")).length;
    renameSync(gone, repository.folder);
    // Without a request: the next poll finds it.
    await stackUntil(place, "troubled", isReady);
    expect((await updatesOf(place, "troubled")).length).toBeLessThanOrEqual(count + 1);
  },
  slow,
);

/** A commit with the same files, and no parent. */
function orphan(repository: TestRepository, commit: string): string {
  const identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
  return repository.git(...identity, "commit-tree", "-m", "rewritten", `${commit}^{tree}`);
}

const at = ({ folder }: TestRepository): string =>
  `http://${network.machine}:${open.port}/${folder.slice(repositories.length + 1)}`;

const key = (name: string, of: string): object => ({ type: "Secret", secret: { name, key: of } });

async function secret(name: string, stringData: Record<string, string>): Promise<void> {
  const metadata = { name, namespace: place.namespace };
  const text = JSON.stringify({ apiVersion: "v1", kind: "Secret", metadata, stringData });
  // Replaced as a whole: keys that are not given are gone.
  await kubectl(["delete", "secret", name, "-n", place.namespace, "--ignore-not-found"]);
  await kubectl(["create", "-f", "-"], { input: text });
}

async function deploy(name: string, spec: object): Promise<void> {
  const object = {
    apiVersion: "pulumi.com/v1",
    kind: "Stack",
    metadata: { name, namespace: place.namespace },
    spec: { ...onFileBackend, stack: name, ...spec },
  };
  await apply(object);
}

async function wake(name: string, request: string): Promise<void> {
  const annotation = `${reconcileRequestAnnotation}=${request}`;
  await kubectl(["annotate", "stack", name, "-n", place.namespace, "--overwrite", annotation]);
}

/** Until the Stack's conditions say so of its present spec and request. */
async function told(name: string, words: string, reason = "SourceUnavailable"): Promise<void> {
  const says = ({ status, metadata }: Stack): boolean =>
    status?.observedGeneration === metadata.generation &&
    status?.observedReconcileRequest === metadata.annotations?.[reconcileRequestAnnotation] &&
    Boolean(
      status?.conditions?.some(
        (condition) => condition.type === "Stalled" && condition.reason === reason && condition.message.includes(words),
      ),
    );
  const stack = await stackUntil(place, name, says);
  expect(stack.status?.conditions?.find(({ type }) => type === "Ready")?.status).toBe("False");
}

const isAt =
  (commit: string | undefined) =>
  (stack: Stack): boolean =>
    isReady(stack) && stack.status?.lastUpdate?.lastSuccessfulCommit === commit;

async function podOf(stack: string): Promise<string> {
  const pod = `${stack}-workspace-0`;
  return await kubectl(["get", "pod", pod, "-n", place.namespace, "--output=jsonpath={.metadata.uid}"]);
}

async function inPod(stack: string, script: string): Promise<string> {
  const pod = ["exec", `${stack}-workspace-0`, "-n", place.namespace, "-c", "pulumi"];
  return (await kubectl([...pod, "--", "sh", "-c", `cd /share/workspace && ${script}`])).trim();
}

async function agentLog(stack: string): Promise<string> {
  return await kubectl(["logs", `${stack}-workspace-0`, "-n", place.namespace, "-c", "pulumi"]);
}
