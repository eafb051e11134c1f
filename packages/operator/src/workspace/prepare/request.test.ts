import { describe, expect, test } from "bun:test";

import { normalizeWorkspace, type NormalWorkspace, type Program } from "@pko/api";
import { checkValue, PrepareRequest } from "@pko/rpc";

import { forgeHosts } from "../../sources/server-trust.ts";
import type { Reading } from "../pod/references.ts";
import { buildPrepareRequest, credentialSecrets, noAppTokens, type Materials } from "./request.ts";

function normal(spec: object): NormalWorkspace {
  const result = normalizeWorkspace({
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
const appSecret = secret({ id: "1\n", installation: "2", pem: "PEM" });
const app = { appID: key("id"), installationID: key("installation"), privateKey: key("pem") };

const sources: Readonly<Record<string, { spec: object; with?: Partial<Materials>; gives: object }>> = {
  "a commit": { spec: git(), gives: { kind: "git", url: "https://example.com/r", commit, shallow: false } },
  "a branch, shallow, in a folder": {
    spec: git({}, { ref: "main", shallow: true, dir: "infra" }),
    gives: { kind: "git", url: "https://example.com/r", ref: "main", shallow: true, dir: "infra" },
  },
  "a comparison with an earlier commit": {
    spec: git({}, { compareWith: { commit: "b".repeat(40), pathFilters: ["infra/**"] } }),
    gives: { compareWith: { commit: "b".repeat(40), pathFilters: ["infra/**"] } },
  },
  "a comparison of all files": {
    spec: git({}, { compareWith: { commit: "b".repeat(40) } }),
    gives: { compareWith: { commit: "b".repeat(40), pathFilters: [] } },
  },
  "a token": {
    spec: git({ token: key("t") }),
    with: { secrets: [secret({ t: "tok\n" })] },
    gives: { auth: { kind: "token", token: "tok" } },
  },
  "a user name and a password, from files that end with a line break": {
    spec: git({ username: key("u"), password: key("p") }),
    with: { secrets: [secret({ u: "me\n", p: " p \r\n" })] },
    gives: { auth: { kind: "basic", username: "me", password: " p " } },
  },
  "a token, and the CA of its server": {
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
  "an SSH key with its known hosts": {
    spec: git({ sshPrivateKey: key("k"), password: key("p") }),
    with: { secrets: [secret({ k: "PEM", p: "pass", known_hosts: "h ssh-ed25519 A" })] },
    gives: { auth: { kind: "ssh", privateKey: "PEM", passphrase: "pass", knownHosts: "h ssh-ed25519 A" } },
  },
  "an SSH key with the well-known hosts": {
    spec: git({ sshPrivateKey: key("k") }),
    with: { secrets: [secret({ k: "PEM" })] },
    gives: { auth: { kind: "ssh", privateKey: "PEM", knownHosts: forgeHosts } },
  },
  "a GitHub App's token": {
    spec: git({ githubApp: app }),
    with: { secrets: [appSecret], appToken: { ok: true, token: "ghs" } },
    gives: { auth: { kind: "basic", username: "x-access-token", password: "ghs" } },
  },
  "an artifact of Flux": {
    spec: { flux: { url: "http://source/a.tgz", digest: "sha256:ab", dir: "x" } },
    with: { maxUnpackedBytes: 5 },
    gives: { kind: "flux", url: "http://source/a.tgz", digest: "sha256:ab", dir: "x", maxUnpackedBytes: 5 },
  },
  "a folder of the image": { spec: { local: { dir: "/app" } }, gives: { kind: "local", dir: "/app" } },
  "a program from an init container": { spec: {}, gives: { kind: "local", dir: "/share/workspace" } },
  "a project without its program": {
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
  "a Program that sets its own name": {
    spec: { program: { name: "site" } },
    with: { program: program({ name: "other" }) },
    gives: { files: { "Pulumi.yaml": "name: other\nruntime: yaml\n" } },
  },
  "a Program that is newer than the requested generation": {
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

describe("the request contains", () => {
  for (const [name, { spec, with: materials, gives }] of Object.entries(sources)) {
    test(name, () => {
      const result = buildPrepareRequest(normal(spec), { secrets: [], ...materials });
      expect(result).toMatchObject({ kind: "complete", request: { source: gives } });
      // The agent refuses a request that does not match its schema.
      expect(result.kind === "complete" && checkValue(PrepareRequest, result.request)).toMatchObject({ ok: true });
    });
  }

  test("the stack with all its settings", () => {
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
    expect(result.kind === "complete" && result.request.stacks).toEqual([
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
    expect(result.kind === "complete" && checkValue(PrepareRequest, result.request)).toMatchObject({ ok: true });
  });

  test("the names for the agent's log", () => {
    const origin = { workspace: "web", stack: "web" };
    const result = buildPrepareRequest(normal({ local: { dir: "/a" } }), { secrets: [], origin });
    expect(result).toMatchObject({ request: { origin } });
    expect(result.kind === "complete" && checkValue(PrepareRequest, result.request)).toMatchObject({ ok: true });
  });

  test("all stacks that the Workspace lists, in its order", () => {
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
    expect(bare).toMatchObject({ kind: "complete", request: { stacks: [] } });
  });
});

const problems: Readonly<
  Record<string, { spec: object; with?: Partial<Materials>; contains: string; soon?: boolean }>
> = {
  "a Secret that does not exist": {
    spec: git({ token: key("t") }),
    contains: "there is no Secret s, which Git authentication needs",
  },
  "a key that does not exist": {
    spec: git({ token: key("t") }),
    with: { secrets: [secret({})] },
    contains: "has no key t",
  },
  "an empty token": {
    spec: git({ token: key("t") }),
    with: { secrets: [secret({ t: "" })] },
    contains: "has no key t",
  },
  "a user name without a password": {
    spec: git({ username: key("u") }),
    contains: "username and password belong together",
  },
  "a password that does not exist": {
    spec: git({ username: key("u"), password: key("p") }),
    with: { secrets: [secret({ u: "me" })] },
    contains: "has no key p",
  },
  "a CA that does not exist": {
    spec: git({ ca: key("ca.crt") }),
    with: { secrets: [secret({ other: "PEM" })] },
    contains: "the Secret s has no key ca.crt",
  },
  "a passphrase that does not exist": {
    spec: git({ sshPrivateKey: key("k"), password: key("p") }),
    with: { secrets: [secret({ k: "PEM" })] },
    contains: "has no key p",
  },
  "a GitHub App if the operator cannot sign in as one": {
    spec: git({ githubApp: app }),
    with: { secrets: [appSecret], appToken: noAppTokens },
    contains: "cannot sign in as a GitHub App",
  },
  "a GitHub App that GitHub rejects": {
    spec: git({ githubApp: app }),
    with: { secrets: [appSecret], appToken: { ok: false, message: "not installed" } },
    contains: "spec.git.auth.githubApp: not installed",
  },
  "a Program that does not exist": {
    spec: { program: { name: "site" } },
    contains: "there is no Program site",
    soon: true,
  },
  "a generation of a Program that does not exist yet": {
    spec: { program: { name: "site", generation: 5 } },
    with: { program: program({}) },
    contains: "has not reached generation 5",
    soon: true,
  },
};

describe("the request is incomplete because of", () => {
  for (const [name, { spec, with: materials, contains, soon = false }] of Object.entries(problems)) {
    test(name, () => {
      const result = buildPrepareRequest(normal(spec), { secrets: [], ...materials });
      expect(result).toMatchObject({ kind: "incomplete", message: expect.stringContaining(contains) as unknown, soon });
      expect(JSON.stringify(result)).not.toContain("PEM");
    });
  }
});

test("only the Secrets with credentials are read for it", () => {
  expect(credentialSecrets(normal({ local: { dir: "/a" } }))).toEqual([]);
  expect(credentialSecrets(normal(git({ token: key("t"), password: key("p", "other") })))).toEqual(["s", "other"]);
  expect(credentialSecrets(normal(git({ githubApp: app })))).toEqual(["s"]);
  expect(credentialSecrets(normal(git({ ca: key("ca.crt", "authority") })))).toEqual(["authority"]);
});

test("a GitHub App is resolved from its Secret, unless other credentials take precedence", () => {
  const secrets = [appSecret];
  expect(buildPrepareRequest(normal(git({ githubApp: app })), { secrets })).toEqual({
    kind: "needsAppToken",
    app: { appId: "1", installationId: "2", privateKey: "PEM", repository: "https://example.com/r" },
  });
  const token = [secret({ t: "tok" })];
  expect(buildPrepareRequest(normal(git({ githubApp: app, token: key("t") })), { secrets: token })).toMatchObject({
    kind: "complete",
    request: { source: { auth: { kind: "token", token: "tok" } } },
  });
  expect(buildPrepareRequest(normal(git({ githubApp: app })), { secrets: [] })).toMatchObject({ kind: "incomplete" });
});
