import { describe, expect, test } from "bun:test";

import { normaliseWorkspace, type NormalWorkspace, type Program } from "@pko/api";
import { checkValue, PrepareRequest } from "@pko/rpc";

import { forgeHosts } from "../sources/server-trust.ts";
import { buildPrepareRequest, githubAppOf, secretsOf, type Materials } from "./prepare-request.ts";
import type { Reading } from "./references.ts";

function normal(spec: object): NormalWorkspace {
  const result = normaliseWorkspace({
    metadata: { name: "web", namespace: "team" },
    spec: { stacks: [{ name: "dev" }], ...spec },
  });
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.value;
}

const commit = "0123456789abcdef0123456789abcdef01234567";
const git = (auth: object = {}, part: object = {}): object => ({
  git: { url: "https://example.com/r", ref: commit, auth, ...part },
});
const key = (name: string, of = "s") => ({ name: of, key: name });
const secret = (data: Record<string, string>): Reading => ({ kind: "Secret", name: "s", found: { uid: "u", data } });
const program = (part: Program["program"], generation = 4): Program => ({
  apiVersion: "pulumi.com/v1",
  kind: "Program",
  metadata: { name: "site", generation },
  ...(part && { program: part }),
});
const app = { appID: key("id"), installationID: key("installation"), privateKey: key("pem") };

const sources: Readonly<Record<string, { spec: object; with?: Partial<Materials>; gives: object }>> = {
  "a commit": { spec: git(), gives: { kind: "git", url: "https://example.com/r", commit, shallow: false } },
  "a branch, shallow, in a folder": {
    spec: git({}, { ref: "main", shallow: true, dir: "infra" }),
    gives: { kind: "git", url: "https://example.com/r", ref: "main", shallow: true, dir: "infra" },
  },
  "a token": {
    spec: git({ token: key("t") }),
    with: { secrets: [secret({ t: "tok\n" })] },
    gives: { auth: { kind: "token", token: "tok" } },
  },
  "a name and a password, from files that end with a line break": {
    spec: git({ username: key("u"), password: key("p") }),
    with: { secrets: [secret({ u: "me\n", p: " p \r\n" })] },
    gives: { auth: { kind: "basic", username: "me", password: " p " } },
  },
  "a token, and the authority of its server": {
    spec: git({ token: key("t") }),
    with: { secrets: [secret({ t: "tok", "ca.crt": "PEM" })] },
    gives: { auth: { kind: "token", token: "tok" }, ca: "PEM" },
  },
  "a public repository behind a private CA": {
    spec: git({ ca: key("ca.crt") }),
    with: { secrets: [secret({ "ca.crt": "PEM" })] },
    gives: { kind: "git", url: "https://example.com/r", ca: "PEM" },
  },
  "a token from one Secret and the CA from another": {
    spec: git({ token: key("t", "other"), ca: key("bundle") }),
    with: {
      secrets: [secret({ bundle: "PEM" }), { kind: "Secret", name: "other", found: { uid: "o", data: { t: "tok" } } }],
    },
    gives: { auth: { kind: "token", token: "tok" }, ca: "PEM" },
  },
  "an ssh key with the hosts it knows": {
    spec: git({ sshPrivateKey: key("k"), password: key("p") }),
    with: { secrets: [secret({ k: "PEM", p: "pass", known_hosts: "h ssh-ed25519 A" })] },
    gives: { auth: { kind: "ssh", privateKey: "PEM", passphrase: "pass", knownHosts: "h ssh-ed25519 A" } },
  },
  "an ssh key that knows the well-known hosts": {
    spec: git({ sshPrivateKey: key("k") }),
    with: { secrets: [secret({ k: "PEM" })] },
    gives: { auth: { kind: "ssh", privateKey: "PEM", knownHosts: forgeHosts } },
  },
  "a GitHub App's token": {
    spec: git({ githubApp: app }),
    with: { appToken: { ok: true, token: "ghs" } },
    gives: { auth: { kind: "basic", username: "x-access-token", password: "ghs" } },
  },
  "an artifact of Flux": {
    spec: { flux: { url: "http://source/a.tgz", digest: "sha256:ab", dir: "x" } },
    with: { maxUnpackedBytes: 5 },
    gives: { kind: "flux", url: "http://source/a.tgz", digest: "sha256:ab", dir: "x", maxUnpackedBytes: 5 },
  },
  "a folder of the image": { spec: { local: { dir: "/app" } }, gives: { kind: "local", dir: "/app" } },
  "what an init container has brought": { spec: {}, gives: { kind: "local", dir: "/share/workspace" } },
  "what is remembered of a project": {
    spec: { projectInfo: { name: "p", runtime: "yaml" } },
    gives: { kind: "project", name: "p", runtime: "yaml" },
  },
  "a Program": {
    spec: { program: { name: "site", generation: 4 } },
    with: { program: program({ outputs: { a: "${b}" }, packages: { aws: "6.0.0" } }) },
    gives: {
      kind: "files",
      revision: "4",
      files: { "Pulumi.yaml": "name: site\nruntime: yaml\noutputs:\n  a: ${b}\npackages:\n  aws: 6.0.0\n" },
    },
  },
  "a Program with a name of its own": {
    spec: { program: { name: "site" } },
    with: { program: program({ name: "other" }) },
    gives: { files: { "Pulumi.yaml": "name: other\nruntime: yaml\n" } },
  },
  "a Program that is newer than asked for": {
    spec: { program: { name: "site", generation: 3 } },
    with: { program: program({}) },
    gives: { revision: "4" },
  },
  "an empty Program": {
    spec: { program: { name: "site" } },
    with: { program: program(undefined) },
    gives: { kind: "files" },
  },
};

describe("the agent is asked for", () => {
  for (const [name, { spec, with: materials, gives }] of Object.entries(sources)) {
    test(name, () => {
      const result = buildPrepareRequest(normal(spec), { secrets: [], ...materials });
      expect(result).toMatchObject({ ok: true, request: { source: gives } });
      // The agent refuses what is not of its contract.
      expect(result.ok && checkValue(PrepareRequest, result.request)).toMatchObject({ ok: true });
    });
  }

  test("the stack with all it is to have", () => {
    const stack = {
      name: "org/p/dev",
      create: true,
      secretsProvider: "passphrase",
      environment: ["base"],
      config: [
        { key: "a", value: { b: [1, null] }, secret: true },
        { key: "c.d", path: true, valueFrom: { env: "E" } },
        { key: "f", valueFrom: { path: "/f", json: true } },
      ],
    };
    const result = buildPrepareRequest(normal({ local: { dir: "/a" }, stacks: [stack] }), { secrets: [] });
    expect(result.ok && result.request.stacks).toEqual([
      {
        name: "org/p/dev",
        create: true,
        secretsProvider: "passphrase",
        environments: ["base"],
        config: [
          { key: "a", value: { from: "value", value: { b: [1, null] } }, secret: true },
          { key: "c.d", value: { from: "env", name: "E" }, path: true },
          { key: "f", value: { from: "file", path: "/f", json: true } },
        ],
      },
    ]);
    expect(result.ok && checkValue(PrepareRequest, result.request)).toMatchObject({ ok: true });
  });

  test("as many stacks as the Workspace lists, in its order", () => {
    const plain = { create: false, config: [], environments: [] };
    const listed = { local: { dir: "/a" }, stacks: [{ name: "prod", create: true }, { name: "dev" }] };
    expect(buildPrepareRequest(normal(listed), { secrets: [] })).toMatchObject({
      request: {
        stacks: [
          { ...plain, name: "prod", create: true },
          { ...plain, name: "dev" },
        ],
      },
    });
    const bare = buildPrepareRequest(normal({ local: { dir: "/a" }, stacks: undefined }), { secrets: [] });
    expect(bare).toMatchObject({ ok: true, request: { stacks: [] } });
  });
});

const refusals: Readonly<Record<string, { spec: object; with?: Partial<Materials>; says: string; soon?: boolean }>> = {
  "a Secret that is not there": {
    spec: git({ token: key("t") }),
    says: 'Secret "s", which signs in to the repository, does not exist',
  },
  "a key that is not there": { spec: git({ token: key("t") }), with: { secrets: [secret({})] }, says: "has no key t" },
  "an empty token": { spec: git({ token: key("t") }), with: { secrets: [secret({ t: "" })] }, says: "has no key t" },
  "a name without a password": { spec: git({ username: key("u") }), says: "username and password go together" },
  "a password that is not there": {
    spec: git({ username: key("u"), password: key("p") }),
    with: { secrets: [secret({ u: "me" })] },
    says: "has no key p",
  },
  "a CA that is not there": {
    spec: git({ ca: key("ca.crt") }),
    with: { secrets: [secret({ other: "PEM" })] },
    says: 'Secret "s", which signs in to the repository, has no key ca.crt',
  },
  "a passphrase that is not there": {
    spec: git({ sshPrivateKey: key("k"), password: key("p") }),
    with: { secrets: [secret({ k: "PEM" })] },
    says: "has no key p",
  },
  "a GitHub App where nobody can sign in as one": {
    spec: git({ githubApp: app }),
    says: "no way to sign in as a GitHub App",
  },
  "a GitHub App that GitHub refuses": {
    spec: git({ githubApp: app }),
    with: { appToken: { ok: false, message: "not installed" } },
    says: "spec.git.auth.githubApp: not installed",
  },
  "a Program that is not there": {
    spec: { program: { name: "site" } },
    says: 'Program "site" does not exist',
    soon: true,
  },
  "a Program that is to come": {
    spec: { program: { name: "site", generation: 5 } },
    with: { program: program({}) },
    says: "awaited at generation 5",
    soon: true,
  },
};

describe("the agent is not asked for", () => {
  for (const [name, { spec, with: materials, says, soon = false }] of Object.entries(refusals)) {
    test(name, () => {
      const result = buildPrepareRequest(normal(spec), { secrets: [], ...materials });
      expect(result).toMatchObject({ ok: false, message: expect.stringContaining(says) as unknown, soon });
      expect(JSON.stringify(result)).not.toContain("PEM");
    });
  }
});

test("only the Secrets that sign in are read for it", () => {
  expect(secretsOf(normal({ local: { dir: "/a" } }))).toEqual([]);
  expect(secretsOf(normal(git({ token: key("t"), password: key("p", "other") })))).toEqual(["s", "other"]);
  expect(secretsOf(normal(git({ githubApp: app })))).toEqual(["s"]);
  expect(secretsOf(normal(git({ ca: key("ca.crt", "authority") })))).toEqual(["authority"]);
});

test("a GitHub App is resolved from its Secret, unless another way to sign in comes first", () => {
  const data = secret({ id: "1\n", installation: "2", pem: "PEM" });
  expect(githubAppOf(normal(git({ githubApp: app })), [data])).toEqual({
    ok: true,
    value: { appId: "1", installationId: "2", privateKey: "PEM", repository: "https://example.com/r" },
  });
  expect(githubAppOf(normal(git({ githubApp: app, token: key("t") })), [data])).toBeUndefined();
  expect(githubAppOf(normal(git({ githubApp: app })), [])).toMatchObject({ ok: false });
});
