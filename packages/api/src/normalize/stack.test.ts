import { describe, expect, test } from "bun:test";

import { describeProblems, normalizeStack, type NormalStack } from "./index.ts";

const secret = (name: string, key: string) => ({ type: "Secret", secret: { name, key } });

/** A Stack with only `spec`, and with a Program as its source unless `spec` has one. */
function stack(spec: Record<string, unknown>): object {
  const hasSource = ["projectRepo", "fluxSource", "programRef", "workspaceTemplate"].some((field) => field in spec);
  return {
    apiVersion: "pulumi.com/v1",
    kind: "Stack",
    metadata: { name: "web", namespace: "team" },
    spec: { stack: "dev", ...(!hasSource && { programRef: { name: "web" } }), ...spec },
  };
}

const git = (fields: Record<string, unknown>) => ({ projectRepo: "https://host/repo", branch: "main", ...fields });

function normal(spec: Record<string, unknown>): NormalStack {
  const outcome = normalizeStack(stack(spec));
  if (!outcome.ok) throw new Error(describeProblems(outcome.problems));
  return outcome.value;
}

function adviceOn(spec: Record<string, unknown>): string[] {
  return normalizeStack(stack(spec)).advice.map(({ field }) => field);
}

describe("equivalent spellings", () => {
  const same: [string, Record<string, unknown>, Record<string, unknown>][] = [
    [
      "configRef and configRefs",
      { configRef: { db: { name: "settings", key: "db.json", json: true } } },
      { configRefs: { db: { name: "settings", key: "db.json", json: true } } },
    ],
    [
      "the two forms of a prerequisite",
      { prerequisites: [{ name: "cluster", requirement: { succeededWithinDuration: "30m" } }] },
      { prerequisites: [{ type: "Stack", requirement: "cluster", succeededWithinDuration: "30m" }] },
    ],
    [
      "the two forms of a prerequisite without a duration",
      { prerequisites: [{ name: "cluster" }] },
      { prerequisites: [{ type: "Stack", requirement: "cluster" }] },
    ],
    [
      "init containers in the template and in its pod template",
      { programRef: { name: "web" }, workspaceTemplate: { spec: { initContainers: [{ name: "a", image: "b" }] } } },
      {
        programRef: { name: "web" },
        workspaceTemplate: { spec: { podTemplate: { spec: { initContainers: [{ name: "a", image: "b" }] } } } },
      },
    ],
    ["a short and a full branch", git({ branch: "main" }), git({ branch: "refs/heads/main" })],
    ["a tag and a tag in branch", git({ branch: "", tag: "v1" }), git({ branch: "refs/tags/v1" })],
    ["a directory with and without slashes", git({ repoDir: "./infra/" }), git({ repoDir: "infra" })],
    [
      "accessTokenSecret and the equivalent reference",
      { accessTokenSecret: "token" },
      { envRefs: { PULUMI_ACCESS_TOKEN: secret("token", "accessToken") } },
    ],
    [
      "backend and the equivalent variable",
      { backend: "s3://state" },
      { envRefs: { PULUMI_BACKEND_URL: { type: "Literal", literal: { value: "s3://state" } } } },
    ],
    [
      "secrets and secretsRef with a literal",
      { secrets: { password: "hunter2" } },
      { secretsRef: { password: { type: "Literal", literal: { value: "hunter2" } } } },
    ],
    ["initOnCreate and no initOnCreate", { initOnCreate: true }, {}],
    ["a resync below the minimum and the default", { resyncFrequencySeconds: 10 }, {}],
    [
      "a huge resync interval and one of ten years",
      { resyncFrequencySeconds: Number.MAX_SAFE_INTEGER, retryMaxBackoffDurationSeconds: Number.MAX_SAFE_INTEGER },
      { resyncFrequencySeconds: 315_360_000, retryMaxBackoffDurationSeconds: 315_360_000 },
    ],
    ["the default type of Update and no type", { updateTemplate: { spec: { type: "up" } } }, { updateTemplate: {} }],
    ["a backoff of 0 and the default", { retryMaxBackoffDurationSeconds: 0 }, {}],
    [
      "a reference to the own namespace and one without a namespace",
      { envRefs: { A: { type: "Secret", secret: { name: "a", key: "b", namespace: "team" } } } },
      { envRefs: { A: secret("a", "b") } },
    ],
  ];
  for (const [what, one, other] of same) {
    test(what, () => expect(normal(one)).toEqual(normal(other)));
  }
});

describe("the source", () => {
  test("is a Git repository with its revision and directory", () => {
    expect(normal(git({ repoDir: "infra/", shallow: true })).source).toEqual({
      kind: "git",
      repository: { transport: "https", url: "https://host/repo" },
      ref: { kind: "branch", name: "main" },
      dir: "infra",
      shallow: true,
      pathFilters: [],
      auth: { kind: "none" },
    });
  });

  test("is a Flux source", () => {
    const sourceRef = { apiVersion: "source.toolkit.fluxcd.io/v1", kind: "GitRepository", name: "repo" };
    expect(normal({ fluxSource: { sourceRef, dir: "infra" } }).source).toEqual({
      kind: "flux",
      sourceRef,
      dir: "infra",
    });
  });

  test("is a Program", () => {
    expect(normal({ programRef: { name: "web" } }).source).toEqual({ kind: "program", name: "web" });
  });

  test("is a directory in the image", () => {
    const local = { dir: "/home/pulumi/web" };
    expect(normal({ workspaceTemplate: { spec: { local } } }).source).toEqual({ kind: "local", ...local });
  });

  test("is the template if only the template has a source", () => {
    const spec = { git: { url: "https://host/repo", ref: "main" } };
    expect(normal({ workspaceTemplate: { spec } }).source).toEqual({ kind: "template" });
  });

  const providing: [string, object][] = [
    ["an init container", { initContainers: [{ name: "copy", image: "busybox" }] }],
    [
      "an init container in the pod template",
      { podTemplate: { spec: { initContainers: [{ name: "copy", image: "busybox" }] } } },
    ],
    ["an additional container", { podTemplate: { spec: { containers: [{ name: "sync", image: "git-sync" }] } } }],
    [
      "a volume",
      { podTemplate: { spec: { volumes: [{ name: "share", persistentVolumeClaim: { claimName: "c" } }] } } },
    ],
  ];
  for (const [what, spec] of providing) {
    test(`may be provided by ${what}`, () => {
      expect(normal({ workspaceTemplate: { spec } }).source).toEqual({ kind: "template" });
    });
  }

  const providingNothing: [string, object][] = [
    ["nothing", {}],
    ["only an image, because the directory is on a volume", { image: "i" }],
    [
      "a patch of a generated container",
      { podTemplate: { spec: { initContainers: [{ name: "bootstrap", image: "i" }] } } },
    ],
    ["settings of the pod", { podTemplate: { spec: { containers: [{ name: "pulumi", image: "i" }], volumes: [] } } }],
    [
      "values of the wrong type",
      { podTemplate: { spec: { containers: "i", initContainers: [null, "i"], volumes: 7 } } },
    ],
  ];
  for (const [what, spec] of providingNothing) {
    test(`is missing if a template contains ${what}`, () => {
      expect(() => normal({ workspaceTemplate: { spec } })).toThrow("the program has no source");
    });
  }

  test("may be patched by the template", () => {
    const spec = git({ workspaceTemplate: { spec: { git: { shallow: true } } } });
    expect(normal(spec).source.kind).toBe("git");
    expect(normal(spec).workspace.spec.git).toEqual({ shallow: true });
  });
});

describe("Git credentials", () => {
  const key = (name: string) => ({ name: "git", key: name });
  const from = (name: string) => secret("git", name);
  const cases: [string, Record<string, unknown>, object][] = [
    ["a token", { gitAuth: { accessToken: from("t") } }, { kind: "token", token: key("t") }],
    ["an SSH key", { gitAuth: { sshAuth: { sshPrivateKey: from("k") } } }, { kind: "ssh", privateKey: key("k") }],
    [
      "an SSH key with a passphrase",
      { gitAuth: { sshAuth: { sshPrivateKey: from("k"), password: from("p") } } },
      { kind: "ssh", privateKey: key("k"), password: key("p") },
    ],
    [
      "a user and password",
      { gitAuth: { basicAuth: { userName: from("u"), password: from("p") } } },
      { kind: "basic", userName: key("u"), password: key("p") },
    ],
    [
      "a GitHub App",
      { gitAuth: { githubApp: { appID: from("a"), installationID: from("i"), privateKey: from("k") } } },
      { kind: "githubApp", appId: key("a"), installationId: key("i"), privateKey: key("k") },
    ],
    ["a Secret with well-known keys", { gitAuthSecret: "git" }, { kind: "secret", name: "git" }],
    [
      "the Secret if a Secret and a token are set, as in the Go operator",
      { gitAuthSecret: "git", gitAuth: { accessToken: from("t") } },
      { kind: "secret", name: "git" },
    ],
    [
      "the SSH key if a token and an SSH key are set, as in the Go operator",
      { gitAuth: { accessToken: from("t"), sshAuth: { sshPrivateKey: from("k") } } },
      { kind: "ssh", privateKey: key("k") },
    ],
  ];
  for (const [what, fields, auth] of cases) {
    test(what, () => expect(normal(git(fields)).source).toMatchObject({ auth }));
  }
});

describe("the environment", () => {
  test("supports every type of reference, sorted by name", () => {
    const { env } = normal({
      envRefs: {
        D: { type: "StackOutput", stack: "cluster", output: "kubeconfig" },
        C: { type: "ConfigMap", configMap: { name: "settings", key: "region" } },
        B: secret("aws", "key"),
        A: { type: "Literal", literal: { value: "" } },
      },
    });
    expect(env).toEqual([
      { name: "A", from: { kind: "literal", value: "" } },
      { name: "B", from: { kind: "secret", name: "aws", key: "key" } },
      { name: "C", from: { kind: "configMap", name: "settings", key: "region" } },
      { name: "D", from: { kind: "stackOutput", stack: "cluster", output: "kubeconfig" } },
    ]);
  });

  test("has whole ConfigMaps and Secrets in the order of the spec", () => {
    expect(normal({ envs: ["b", "a"], envSecrets: ["c"] }).envFrom).toEqual([
      { kind: "configMap", name: "b" },
      { kind: "configMap", name: "a" },
      { kind: "secret", name: "c" },
    ]);
  });

  test("prefers a reference to the equivalent field", () => {
    const spec = { backend: "s3://old", envRefs: { PULUMI_BACKEND_URL: secret("state", "url") } };
    expect(normal(spec).env).toEqual([
      { name: "PULUMI_BACKEND_URL", from: { kind: "secret", name: "state", key: "url" } },
    ]);
    expect(adviceOn(spec)).toEqual(["spec.envRefs.PULUMI_BACKEND_URL"]);
  });

  test("ignores the fields of other types of reference", () => {
    const reference = { ...secret("a", "b"), literal: { value: "ignored" } };
    expect(normal({ envRefs: { A: reference } }).env[0]?.from.kind).toBe("secret");
  });
});

describe("the configuration", () => {
  test("is one list of structured, referenced and secret values, sorted by key", () => {
    const { config } = normal({
      config: { "aws:region": "us-east-1", db: { port: 5432, ssl: true }, zones: ["a", "b"], count: 3, cache: false },
      configRef: { text: { name: "settings", key: "text" } },
      configRefs: { json: { name: "settings", key: "json", json: true } },
      secretsRef: { password: secret("db", "password"), kubeconfig: { type: "StackOutput", stack: "c", output: "k" } },
    });
    expect(config).toEqual([
      { key: "aws:region", secret: false, from: { kind: "value", value: "us-east-1" } },
      { key: "cache", secret: false, from: { kind: "value", value: false } },
      { key: "count", secret: false, from: { kind: "value", value: 3 } },
      { key: "db", secret: false, from: { kind: "value", value: { port: 5432, ssl: true } } },
      { key: "json", secret: false, from: { kind: "configMap", name: "settings", key: "json", json: true } },
      { key: "kubeconfig", secret: true, from: { kind: "stackOutput", stack: "c", output: "k" } },
      { key: "password", secret: true, from: { kind: "secret", name: "db", key: "password" } },
      { key: "text", secret: false, from: { kind: "configMap", name: "settings", key: "text", json: false } },
      { key: "zones", secret: false, from: { kind: "value", value: ["a", "b"] } },
    ]);
  });

  test("may be set in both spellings of configRef if they agree", () => {
    const ref = { name: "settings", key: "text" };
    expect(normal({ configRef: { a: ref }, configRefs: { a: ref } }).config).toHaveLength(1);
  });
});

describe("prerequisites", () => {
  test("on the same Stack are merged, and the strictest applies", () => {
    const prerequisites = [
      { name: "cluster", requirement: { succeededWithinDuration: "1h" } },
      { type: "Stack", requirement: "cluster", succeededWithinDuration: "10m" },
      { name: "network" },
    ];
    expect(normal({ prerequisites }).prerequisites).toEqual([
      { stack: "cluster", succeededWithinMs: 600_000 },
      { stack: "network" },
    ]);
  });
});

describe("defaults", () => {
  test("are those of the Go operator", () => {
    expect(normal({})).toMatchObject({
      operation: "up",
      refresh: false,
      expectNoRefreshChanges: false,
      create: true,
      destroyOnFinalize: false,
      resync: { everyMs: 60_000, always: false },
      retry: { maxBackoffMs: 86_400_000, onConflict: false },
      workspace: { reclaim: "Retain", labels: {}, annotations: {}, spec: {} },
      update: { ttlAfterCompletedMs: 86_400_000, labels: {}, annotations: {}, spec: {} },
    });
  });

  test("are overridden by the spec", () => {
    const actual = normal({
      preview: true,
      refresh: true,
      expectNoRefreshChanges: true,
      useLocalStackOnly: true,
      destroyOnFinalize: true,
      runProgram: true,
      continueResyncOnCommitMatch: true,
      resyncFrequencySeconds: 300,
      retryMaxBackoffDurationSeconds: 600,
      retryOnUpdateConflict: true,
      workspaceReclaimPolicy: "Delete",
      serviceAccountName: "deployer",
      targets: ["urn:a"],
      targetDependents: true,
      environment: ["aws"],
      oidc: { team: "platform" },
      secretsProvider: "awskms://key",
      updateTemplate: {
        metadata: { labels: { team: "web" } },
        spec: { ttlAfterCompleted: "1h", parallel: 4, continueOnError: true },
      },
    });
    expect(actual).toMatchObject({
      operation: "preview",
      refresh: true,
      expectNoRefreshChanges: true,
      create: false,
      destroyOnFinalize: true,
      runProgramOnDestroy: true,
      resync: { everyMs: 300_000, always: true },
      retry: { maxBackoffMs: 600_000, onConflict: true },
      workspace: { reclaim: "Delete", serviceAccountName: "deployer" },
      targets: ["urn:a"],
      targetDependents: true,
      environments: ["aws"],
      oidc: { team: "platform" },
      secretsProvider: "awskms://key",
      update: {
        labels: { team: "web" },
        ttlAfterCompletedMs: 3_600_000,
        spec: { parallel: 4, continueOnError: true },
      },
    });
  });
});

describe("advice", () => {
  const cases: [string, Record<string, unknown>, string][] = [
    ["on accessTokenSecret", { accessTokenSecret: "a" }, "spec.accessTokenSecret"],
    ["on envs", { envs: ["a"] }, "spec.envs"],
    ["on envSecrets", { envSecrets: ["a"] }, "spec.envSecrets"],
    ["on secrets", { secrets: { a: "b" } }, "spec.secrets"],
    ["on gitAuthSecret", git({ gitAuthSecret: "a" }), "spec.gitAuthSecret"],
    ["on a password in the repository's URL", git({ projectRepo: "https://u:p@h/r" }), "spec.projectRepo"],
    ["on a resync below the minimum", { resyncFrequencySeconds: 5 }, "spec.resyncFrequencySeconds"],
    ["on shallow without a repository", { shallow: true }, "spec.shallow"],
    ["on oidc with a token", { oidc: {}, envRefs: { PULUMI_ACCESS_TOKEN: secret("a", "b") } }, "spec.oidc"],
    ["on expectNoRefreshChanges without refresh", { expectNoRefreshChanges: true }, "spec.expectNoRefreshChanges"],
    [
      "on expectNoRefreshChanges for a preview",
      { expectNoRefreshChanges: true, refresh: true, preview: true },
      "spec.expectNoRefreshChanges",
    ],
  ];
  for (const [what, spec, field] of cases) {
    test(`${what} does not make the spec invalid`, () => {
      expect(normalizeStack(stack(spec)).ok).toBe(true);
      expect(adviceOn(spec)).toEqual([field]);
    });
  }
});

describe("pull requests", () => {
  const forge = { type: "GitHub", secretRef: { name: "forge" } };
  const report = { type: "Gitea", url: "https://git.example.com/api/v1", secretRef: { name: "reports" } };
  const problemsOf = (spec: Record<string, unknown>): string[] => {
    const outcome = normalizeStack(stack(spec));
    return outcome.ok ? [] : outcome.problems.map(({ field }) => field);
  };

  test("into the branch that the Stack follows are previewed by default, the ten newest, every minute, without forks", () => {
    const defaults = { forge, labels: [], branches: ["main"], limit: 10, everyMs: 60_000, allowForks: false };
    expect(normal(git({ pullRequests: forge })).pullRequests).toEqual(defaults as never);
    expect(normal(git({})).pullRequests).toBeUndefined();
  });

  test("are of the forge of the report, unless they name another", () => {
    expect(normal(git({ report, pullRequests: {} })).pullRequests?.forge).toEqual(report as never);
    const other = normal(git({ report, pullRequests: { secretRef: { name: "prs" } } })).pullRequests;
    expect(other?.forge).toEqual({ ...report, secretRef: { name: "prs" } } as never);
  });

  test("name their branches as globs, unless they are into the one that the Stack follows", () => {
    const branchesOf = (branch: string) => normal(git({ branch, pullRequests: forge })).pullRequests?.branches;
    expect(branchesOf("refs/heads/release/1")).toEqual(["release/1"]);
    expect(branchesOf("a{b}")).toEqual([String.raw`a\{b\}`]);
    const branches = ["release/*"];
    expect(normal(git({ branch: "", tag: "v1", pullRequests: { ...forge, branches } })).pullRequests).toMatchObject({
      branches,
    });
  });

  test.each([
    ["a program that is not in Git", { pullRequests: forge }, "spec.projectRepo"],
    ["no forge", git({ pullRequests: { type: "GitHub" } }), "spec.pullRequests"],
    ["a tag", git({ branch: "", tag: "v1", pullRequests: forge }), "spec.pullRequests.branches"],
    [
      "labels at Bitbucket",
      git({ pullRequests: { ...forge, type: "Bitbucket", labels: ["preview"] } }),
      "spec.pullRequests.labels",
    ],
    [
      "labels at the Bitbucket of the report",
      git({ report: { ...forge, type: "BitbucketDataCenter" }, pullRequests: { labels: ["preview"] } }),
      "spec.pullRequests.labels",
    ],
  ])("with %s are a problem", (_, spec, field) => {
    expect(problemsOf(spec)).toEqual([field]);
  });
});

describe("a path filter", () => {
  const problemsOf = (filter: string): readonly string[] => {
    const outcome = normalizeStack(stack(git({ pathFilters: ["docs/**", filter] })));
    return outcome.ok ? [] : outcome.problems.map(({ message }) => message);
  };
  test.each(["infra/", "!infra/", "infra/..", "infra//a", "infra/./a", "[ab", "a[bc", "{a,b", "infra/{a,b"])(
    "that can match no file is a problem: %s",
    (filter) => expect(problemsOf(filter)).toEqual([expect.stringContaining("matches no file")]),
  );
  test.each(["/infra", "./infra", "!../infra"])("must be relative to the root: %s", (filter) =>
    expect(problemsOf(filter)).toEqual([expect.stringContaining("relative to the root")]),
  );
  test.each([
    "infra",
    "infra/**",
    "!infra/.env",
    "..a/b",
    "[ab]/{a,b}",
    "{a,[bc]}",
    String.raw`a\[b`,
    "a.{ts,js}",
    "a...b",
  ])("is valid: %s", (filter) => expect(problemsOf(filter)).toEqual([]));
});

describe("problems", () => {
  const outcomeOf = (spec: Record<string, unknown>) => {
    const outcome = normalizeStack(stack(spec));
    return outcome.ok ? [] : outcome.problems;
  };

  test("are reported together", () => {
    const spec = {
      projectRepo: "git://host/repo",
      branch: "a b",
      config: { a: null },
      envRefs: { A: { type: "FS", filesystem: { path: "/" } } },
      prerequisites: [{ name: "web" }],
      resyncFrequencySeconds: -1,
      updateTemplate: { spec: { type: "refresh" } },
    };
    expect(outcomeOf(spec).map(({ field }) => field)).toEqual([
      "spec.projectRepo",
      "spec.branch",
      "spec.envRefs.A.type",
      "spec.config.a",
      "spec.prerequisites[0].name",
      "spec.resyncFrequencySeconds",
      "spec.updateTemplate.spec.type",
    ]);
  });

  test("include API groups without Flux sources", () => {
    // One that has a million dots is refused in linear time.
    for (const apiVersion of ["v1", "apps/v1", "v1.0", "apps/v1.0", ".".repeat(1_000_000)]) {
      const sourceRef = { apiVersion, kind: "Pod", name: "repo" };
      const fields = outcomeOf({ fluxSource: { sourceRef } }).map(({ field }) => field);
      expect(fields).toEqual(["spec.fluxSource.sourceRef.apiVersion"]);
    }
  });

  test("include unsupported secrets providers", () => {
    const problemFields = (secretsProvider: string): string[] =>
      outcomeOf({ programRef: { name: "p" }, secretsProvider }).map(({ field }) => field);
    for (const provider of [
      "default",
      "passphrase",
      "awskms://alias/a?region=b",
      "gcpkms://projects/a",
      "hashivault://k",
    ]) {
      expect(problemFields(provider)).toEqual([]);
    }
    for (const provider of ["awskms", "kms://a", "azurekeyvault://", "--help"]) {
      expect(problemFields(provider)).toEqual(["spec.secretsProvider"]);
    }
  });

  test("are truncated to fit into a condition's message", () => {
    const refs = Array.from({ length: 2000 }, (_, index) => [`A${index}${"x".repeat(900)}`, { type: "Env" }] as const);
    const message = describeProblems(outcomeOf({ envRefs: Object.fromEntries(refs) }));
    expect(message.length).toBeLessThan(32_768);
    expect(describeProblems(outcomeOf({ envs: Array.from({ length: 30 }, () => "_") }))).toEndWith("and 10 more");
  });

  test("never contain a secret that was set in the wrong field", () => {
    const spec = {
      projectRepo: "git://user:hunter2@host/repo",
      branch: "main",
      secrets: { a: "hunter2" },
      config: { a: "hunter2" },
      gitAuth: { accessToken: { type: "Literal", literal: { value: "hunter2" } } },
    };
    expect(outcomeOf(spec).length).toBeGreaterThan(2);
    expect(JSON.stringify(normalizeStack(stack(spec)))).not.toContain("hunter2");
  });
});

describe("a value that is not a Stack", () => {
  const garbage: unknown[] = [undefined, null, 0, "", [], {}, { spec: null }, { metadata: {}, spec: [] }, () => 1, 1n];
  for (const [index, value] of garbage.entries()) {
    test(`is a problem, not an exception (${index})`, () => expect(normalizeStack(value).ok).toBe(false));
  }

  test("is reported by field", () => {
    const outcome = normalizeStack({ metadata: { name: "a" }, spec: { envRefs: { A: { type: 1 } }, targets: "x" } });
    const fields = outcome.ok ? [] : outcome.problems.map(({ field }) => field);
    expect(fields.toSorted()).toEqual(["spec.envRefs.A.type", "spec.stack", "spec.targets"]);
  });
});
