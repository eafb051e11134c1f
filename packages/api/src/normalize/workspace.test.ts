import { describe, expect, test } from "bun:test";

import { normalizeWorkspace } from "./workspace.ts";

const workspace = (spec: object, name = "web") => ({ metadata: { name, namespace: "team" }, spec });

describe("a Workspace", () => {
  test("has the Go operator's defaults", () => {
    expect(normalizeWorkspace(workspace({}))).toMatchObject({
      ok: true,
      value: {
        serviceAccountName: "default",
        securityProfile: "restricted",
        image: "pulumi/pulumi:latest-nonroot",
        source: { kind: "none" },
        resources: { requests: { memory: "64Mi", cpu: "100m" } },
        stacks: [],
      },
    });
  });

  test("needs no spec", () => expect(normalizeWorkspace({ metadata: { name: "web" } }).ok).toBe(true));

  test("uses the root image with the baseline profile", () => {
    expect(normalizeWorkspace(workspace({ securityProfile: "baseline" }))).toMatchObject({
      value: { image: "pulumi/pulumi:latest" },
    });
  });

  test("keeps the requests of the spec", () => {
    const resources = { requests: { cpu: 2 }, limits: { memory: "1Gi" } };
    expect(normalizeWorkspace(workspace({ resources }))).toMatchObject({
      value: { resources: { requests: { cpu: 2, memory: "64Mi" }, limits: { memory: "1Gi" } } },
    });
  });

  const compareWith = { commit: "a".repeat(40), pathFilters: ["infra/**"] };
  const sources: [string, object, object][] = [
    [
      "Git",
      { git: { url: "https://host/repo", ref: "abc", dir: "/infra/" } },
      {
        kind: "git",
        repository: { transport: "https", url: "https://host/repo" },
        ref: "abc",
        dir: "infra",
        shallow: false,
        auth: {},
      },
    ],
    [
      "Git, compared with an earlier commit",
      { git: { url: "https://host/repo", ref: "abc", compareWith } },
      {
        kind: "git",
        repository: { transport: "https", url: "https://host/repo" },
        ref: "abc",
        dir: "",
        shallow: false,
        auth: {},
        compareWith,
      },
    ],
    [
      "Flux",
      { flux: { url: "http://source/a.tgz", digest: "sha256:ab", dir: "x" } },
      { kind: "flux", url: "http://source/a.tgz", digest: "sha256:ab", dir: "x" },
    ],
    ["a directory in the image", { local: { dir: "/app" } }, { kind: "local", dir: "/app" }],
    ["a Program", { program: { name: "web", generation: 3 } }, { kind: "program", name: "web", generation: 3 }],
    [
      "an empty project",
      { projectInfo: { name: "a", runtime: "yaml" } },
      { kind: "projectInfo", name: "a", runtime: "yaml" },
    ],
  ];
  for (const [what, spec, source] of sources) {
    test(`reads its program from ${what}`, () => {
      expect(normalizeWorkspace(workspace(spec))).toMatchObject({ ok: true, value: { source } });
    });
  }

  test("has the idle timeout of its spec", () => {
    expect(normalizeWorkspace(workspace({}))).not.toHaveProperty("value.idleTimeoutMs");
    expect(normalizeWorkspace(workspace({ idleTimeoutSeconds: 0 }))).toMatchObject({ value: { idleTimeoutMs: 0 } });
    expect(normalizeWorkspace(workspace({ idleTimeoutSeconds: 90 }))).toMatchObject({
      value: { idleTimeoutMs: 90_000 },
    });
  });

  const holders: [string, object, object][] = [
    [
      "the organization in its stack's name",
      {},
      { organization: "acme", holder: { kind: "organization", admin: false } },
    ],
    ["an administrator", { admin: true }, { holder: { kind: "organization", admin: true } }],
    ["another organization's team", { organization: "o", team: "t" }, { organization: "o", holder: { team: "t" } }],
    ["a user for an hour", { user: "u", expirationSeconds: 3600 }, { holder: { user: "u" }, expirationSeconds: 3600 }],
  ];
  for (const [what, oidc, expected] of holders) {
    test(`logs in as ${what}`, () => {
      const spec = { oidc, stacks: [{ name: "acme/web/dev" }] };
      expect(normalizeWorkspace(workspace(spec))).toMatchObject({ ok: true, value: { oidc: expected } });
    });
  }

  test("reads configuration from values, variables and files", () => {
    const config = [
      { key: "a", value: { b: 1 }, secret: true },
      { key: "b.c", path: true, valueFrom: { env: "B" } },
      { key: "d", valueFrom: { path: "/run/d", json: true } },
    ];
    expect(normalizeWorkspace(workspace({ stacks: [{ name: "dev", create: true, config }] }))).toMatchObject({
      value: {
        stacks: [
          {
            name: "dev",
            create: true,
            config: [
              { key: "a", isPath: false, secret: true, from: { kind: "value", value: { b: 1 } } },
              { key: "b.c", isPath: true, secret: false, from: { kind: "env", name: "B", json: false } },
              { key: "d", isPath: false, secret: false, from: { kind: "file", path: "/run/d", json: true } },
            ],
          },
        ],
      },
    });
  });

  const bad: [string, object, string][] = [
    ["two sources", { local: { dir: "/a" }, git: { url: "https://h/r", ref: "a" } }, "spec"],
    ["an unsupported URL", { git: { url: "git://h/r", ref: "a" } }, "spec.git.url"],
    [
      "a comparison with no commit",
      { git: { url: "https://h/r", ref: "a", compareWith: { commit: "main" } } },
      "spec.git.compareWith.commit",
    ],
    ["no revision", { git: { url: "https://h/r" } }, "spec.git.ref"],
    ["a directory outside the source", { git: { url: "https://h/r", ref: "a", dir: "../.." } }, "spec.git.dir"],
    ["an artifact without a digest", { flux: { url: "http://h/r" } }, "spec.flux.digest"],
    ["a Program with an invalid name", { program: { name: "../web" } }, "spec.program.name"],
    ["two sources, one a Program", { local: { dir: "/a" }, program: { name: "web" } }, "spec"],
    ["an unknown profile", { securityProfile: "privileged" }, "spec.securityProfile"],
    ["configuration without a value", { stacks: [{ name: "a", config: [{ key: "b" }] }] }, "spec.stacks[0].config[0]"],
    ["a team and a user", { oidc: { team: "a", user: "b" } }, "spec.oidc"],
    ["an administrator of a team", { oidc: { team: "a", admin: true } }, "spec.oidc"],
    ["an invalid organization", { oidc: { organization: "a,b" } }, "spec.oidc.organization"],
    ["a stack that looks like an option", { stacks: [{ name: "-x" }] }, "spec.stacks[0].name"],
  ];
  for (const [what, spec, field] of bad) {
    test(`with ${what} has a problem in ${field}`, () => {
      const outcome = normalizeWorkspace(workspace(spec));
      expect(outcome.ok ? [] : outcome.problems.map((problem) => problem.field)).toEqual([field]);
    });
  }

  test("cannot have a name that is invalid for a Service", () => {
    expect(normalizeWorkspace(workspace({}, "a.b")).ok).toBe(false);
  });
});
