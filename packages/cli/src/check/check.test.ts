import { describe, expect, test } from "bun:test";

import { crdVersionAnnotation, kindDefinitions, version, type StackSpec, type StackStatus } from "@pko/api";

import { checkReport } from "../commands/check.ts";
import { severities, type Check, type Severity, type StackDifference } from "../documents.ts";
import { crds } from "../kinds.ts";
import { render } from "../output/render.ts";
import { aStack } from "../testing/objects.ts";
import { classesCheck, crdCheck, kubernetesCheck, operatorCheck, permissionCheck, policyChecks } from "./cluster.ts";
import { migrationDifferences } from "./migration.ts";
import { redactObject, redactText } from "./redact.ts";

describe("migration", () => {
  type Template = NonNullable<NonNullable<StackSpec["workspaceTemplate"]>["spec"]>;
  const inPod = (spec: object, more: Template = {}): Partial<StackSpec> => ({
    workspaceTemplate: { spec: { ...more, podTemplate: { spec } } },
  });
  const podSpec = "spec.workspaceTemplate.spec.podTemplate.spec";
  const sourceRef = { apiVersion: "source.toolkit.fluxcd.io/v1", kind: "GitRepository", name: "web" };
  type Expected = readonly [Severity, field: string];
  const cases: [string, Partial<StackSpec>, StackStatus | undefined, Expected | undefined][] = [
    ["nothing special", {}, undefined, undefined],
    ["a running update", {}, { currentUpdate: { name: "web-1" } }, ["blocks", "status.currentUpdate"]],
    ["plain http", { projectRepo: "http://git/web.git", branch: "main" }, undefined, ["blocks", "spec.projectRepo"]],
    ["https", { projectRepo: "https://user@git/web.git", branch: "main" }, undefined, undefined],
    [
      "an unknown SSH host",
      { projectRepo: "git@git.acme.com:web.git", branch: "main" },
      undefined,
      ["mayBlock", "spec.gitAuth"],
    ],
    [
      "an SSH host without a user",
      { projectRepo: "ssh://git.acme.com/web", branch: "main" },
      undefined,
      ["mayBlock", "spec.gitAuth"],
    ],
    [
      "an SSH host in the short form",
      { projectRepo: "git.acme.com:web", branch: "main" },
      undefined,
      ["mayBlock", "spec.gitAuth"],
    ],
    ["a known SSH host without a user", { projectRepo: "ssh://GitHub.com/a/b", branch: "main" }, undefined, undefined],
    ["a known SSH host", { projectRepo: "git@github.com:acme/web.git", branch: "main" }, undefined, undefined],
    [
      "a custom image",
      { workspaceTemplate: { spec: { image: "mine:1" } } },
      undefined,
      ["mayBlock", "spec.workspaceTemplate.spec.image"],
    ],
    [
      "a custom image in the pod template",
      inPod({ containers: [{ name: "pulumi", image: "mine:1" }] }),
      undefined,
      ["mayBlock", "spec.workspaceTemplate.spec.podTemplate.spec.containers"],
    ],
    ["the image of another container", inPod({ containers: [{ name: "proxy", image: "p:1" }] }), undefined, undefined],
    ["a pod that runs as root", inPod({ securityContext: { runAsUser: 0 } }), undefined, ["blocks", podSpec]],
    [
      "a container that may run as root",
      inPod({ containers: [{ name: "pulumi", securityContext: { runAsNonRoot: false } }] }),
      undefined,
      ["blocks", podSpec],
    ],
    [
      "root with the profile baseline",
      inPod({ securityContext: { runAsUser: 0 } }, { securityProfile: "baseline" }),
      undefined,
      undefined,
    ],
    [
      "a privileged init container of the workspace",
      {
        workspaceTemplate: {
          spec: { initContainers: [{ name: "i", image: "i:1", securityContext: { privileged: true } }] },
        },
      },
      undefined,
      ["blocks", podSpec],
    ],
    ["a hostPath volume", inPod({ volumes: [{ name: "h", hostPath: { path: "/" } }] }), undefined, ["blocks", podSpec]],
    [
      "an init container beside a repository",
      {
        projectRepo: "https://git/web.git",
        branch: "main",
        workspaceTemplate: { spec: { initContainers: [{ name: "i", image: "i:1" }] } },
      },
      undefined,
      ["mayBlock", `${podSpec}.initContainers`],
    ],
    ["a file backend", { backend: "file:///state" }, undefined, ["differs", "spec.backend"]],
    [
      "a verbose log",
      { workspaceTemplate: { spec: { pulumiLogLevel: 9 } } },
      undefined,
      ["differs", "spec.workspaceTemplate.spec.pulumiLogLevel"],
    ],
    ["three failures", {}, { lastUpdate: { state: "failed", failures: 3 } }, ["differs", "status.lastUpdate.failures"]],
    [
      "expectNoRefreshChanges",
      { refresh: true, expectNoRefreshChanges: true },
      undefined,
      ["differs", "spec.expectNoRefreshChanges"],
    ],
    ["values of Secrets", { configRef: { a: { name: "b", key: "c" } } }, undefined, ["differs", "spec.configRef"]],
    ["a Flux source", { fluxSource: { sourceRef } }, undefined, ["differs", "spec.fluxSource"]],
    ["long outputs", {}, { outputs: { big: "x".repeat(20_000) } }, ["differs", "status.outputs.big"]],
    [
      "an Env reference",
      { envRefs: { A: { type: "Env", env: { name: "B" } } } },
      undefined,
      ["blocks", "spec.envRefs.A.type"],
    ],
    ["a deprecated field", { accessTokenSecret: "t", oidc: {} }, undefined, ["differs", "spec.oidc"]],
  ];
  test.each(cases)("%s", (...[, spec, status, expected]) => {
    const found = migrationDifferences([aStack("web", status, spec)]).map(({ severity, field }) => [severity, field]);
    if (expected === undefined) expect(found).toEqual([]);
    else expect(found).toContainEqual([...expected]);
  });

  test("what blocks is first, then what may block, each sorted by Stack", () => {
    const secretsRef = { a: { type: "Secret", secret: { name: "b", key: "c" } } } as const;
    const image = { workspaceTemplate: { spec: { image: "mine:1" } } };
    const http = { projectRepo: "http://git/web.git", branch: "main" };
    const stacks = [
      ...Array.from({ length: 300 }, (_, at) => aStack(`app-${at}`, undefined, { secretsRef })),
      aStack("y", undefined, { secretsRef, ...image }),
      aStack("z", undefined, { secretsRef, ...http }),
      aStack("x", undefined, http),
    ];
    const found = migrationDifferences(stacks);
    expect(found).toHaveLength(305);
    expect(found.slice(0, 4).map(({ severity, name }) => `${severity} ${name}`)).toEqual([
      "blocks x",
      "blocks z",
      "mayBlock y",
      "differs app-0",
    ]);
  });

  test("a Stack that fails is not suspended by itself before the switch: the Go operator's CRD has no such field", () => {
    const failed = aStack("web", { lastUpdate: { state: "failed", failures: 3 } });
    const { fix } = migrationDifferences([failed]).find(({ field }) => field === "status.lastUpdate.failures") ?? {};
    expect(fix).toContain("suspend all Stacks during the switch");
  });

  test("a prerequisite that is only previewed", () => {
    const stacks = [
      aStack("web", undefined, { prerequisites: [{ name: "db" }] }),
      aStack("db", undefined, { preview: true }),
    ];
    expect(migrationDifferences(stacks)).toMatchObject([
      {
        severity: "blocks",
        name: "web",
        field: "spec.prerequisites",
        fix: "set preview to false in Stack db, or remove the prerequisite",
      },
    ]);
  });
});

describe("the report", () => {
  const difference = (severity: Severity): StackDifference => ({
    severity,
    namespace: "shop",
    name: severity,
    field: "spec",
    message: "it differs",
    fix: "change it",
  });
  const warning: Check = { name: "Policy for Stacks", result: "warning", message: "not installed" };
  const failed: Check = { name: "Kubernetes", result: "failed", message: "v1.30.9" };
  test.each([
    ["0 without differences", [warning], [], 0],
    ["0 if something only differs", [warning], [difference("differs")], 0],
    ["0 if something may block", [warning], [difference("mayBlock"), difference("differs")], 0],
    ["1 if something blocks", [warning], [difference("blocks"), difference("differs")], 1],
    ["1 if a check fails", [failed], [], 1],
  ] as [string, Check[], StackDifference[], number][])("has the exit code %s", (...[, checks, differences, code]) => {
    expect(checkReport(checks, differences).exitCode).toBe(code);
  });

  test("has the severity in JSON, and a part for each severity in text, with what blocks first", () => {
    const report = checkReport([warning], severities.map(difference));
    expect(report.document).toMatchObject({ differences: severities.map((severity) => ({ severity })) });
    const text = render(report.blocks, { width: 100, color: false });
    const parts = [
      "Blocks the migration: correct this before you switch (1)",
      "shop/blocks",
      "May block the migration: check this before you switch (1)",
      "shop/mayBlock",
      "Differs: nothing to do, unless you rely on the old behavior (1)",
      "shop/differs",
    ];
    const places = parts.map((part) => text.indexOf(part));
    expect(places).not.toContain(-1);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
  });

  test("mentions no severity without differences", () => {
    const text = render(checkReport([warning], []).blocks, { width: 100, color: false });
    expect(text).toContain("No Stack has anything else that differs.");
    expect(text).not.toContain("(0)");
  });
});

describe("CRDs before the migration", () => {
  const goKinds = ["stacks.pulumi.com", "programs.pulumi.com", "workspaces.auto.pulumi.com", "updates.auto.pulumi.com"];
  const allKinds = kindDefinitions.map(({ plural, group }) => `${plural}.${group}`);
  const newKinds = allKinds.filter((name) => !goKinds.includes(name));
  const { apiVersion, kind } = crds;
  const present = (names: readonly string[], annotations = {}) =>
    names.map((name) => {
      const value = { apiVersion, kind, metadata: { name, annotations }, spec: {} };
      return [name, { kind: "seen", value }] as const;
    });
  const absent = (names: readonly string[]) => names.map((name) => [name, { kind: "absent" }] as const);
  const byThis = { [crdVersionAnnotation]: version };
  const cases: [string, Parameters<typeof crdCheck>[0], boolean, "ok" | "failed"][] = [
    ["new kinds are installed by the switch", [...present(goKinds), ...absent(newKinds)], true, "ok"],
    [
      "version 1 has neither Workspaces nor Updates",
      [...present(goKinds.slice(0, 2)), ...absent([...goKinds.slice(2), ...newKinds])],
      true,
      "ok",
    ],
    ["without --migrate, missing kinds fail", [...present(goKinds), ...absent(newKinds)], false, "failed"],
    ["without Stacks, nothing can be migrated", absent(allKinds), true, "failed"],
    ["kinds missing of this operator fail", [...present(goKinds, byThis), ...absent(newKinds)], true, "failed"],
  ];
  test.each(cases)("%s", (...[, definitions, isMigration, result]) => {
    const check = crdCheck(definitions, { isMigration });
    expect(check.result).toBe(result);
    expect(check.message).toContain(newKinds.join(", "));
  });
});

describe("checks", () => {
  test.each([
    ["v1.31.0", "ok"],
    ["v1.35.2+k3s1", "ok"],
    ["v1.30.9", "failed"],
  ] as const)("Kubernetes %s: %s", (version, result) => expect(kubernetesCheck(version).result).toBe(result));

  test("missing and hidden CRDs", () => {
    expect(crdCheck([["stacks.pulumi.com", { kind: "absent" }]])).toMatchObject({ result: "failed" });
    const permission = { verb: "get", resource: "customresourcedefinitions", apiGroup: "apiextensions.k8s.io" };
    const hidden = crdCheck([["stacks.pulumi.com", { kind: "hidden", hidden: { what: "the CRD", permission } }]]);
    expect(hidden).toMatchObject({ result: "unknown" });
    expect(hidden.message).toContain(
      "you do not have permission to get customresourcedefinitions.apiextensions.k8s.io in the whole cluster",
    );
  });

  test.each([
    ["stacks", "pulumi.com", true, { name: "Permission: get stacks.pulumi.com", result: "ok", message: "for why" }],
    [
      "pods/log",
      "",
      false,
      { name: "Permission: get pods/log", result: "warning", message: "missing: needed for why" },
    ],
  ] as const)("the permission to get %s", (...[resource, group, isAllowed, check]) => {
    expect(permissionCheck({ group, resource, verb: "get", needed: "why" }, isAllowed)).toMatchObject(check);
  });

  test("no operator, and policies by what they match", () => {
    expect(operatorCheck({ kind: "absent" }, [], 0)).toMatchObject({ result: "warning" });
    const spec = { matchConstraints: { resourceRules: [{ resources: ["approvals"] }] } };
    const policy = { apiVersion: "v1", kind: "ValidatingAdmissionPolicy", metadata: { name: "mine" }, spec };
    const results = policyChecks({ kind: "seen", value: { items: [policy] } }).map(({ result }) => result);
    expect(results).toEqual(["warning", "ok"]);
  });
});

describe("WorkspaceClasses are", () => {
  const lease = (annotations: Record<string, string>) =>
    ({
      kind: "present",
      lease: { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { annotations } },
    }) as const;
  test.each([
    ["on", "ok"],
    ["off", "warning"],
  ] as const)("%s, as the Lease of the operator reports: %s", (state, result) => {
    expect(classesCheck(lease({ "pulumi.com/workspace-classes": state }))).toMatchObject([{ result }]);
  });

  test("not mentioned if the operator does not report them", () => {
    expect([...classesCheck(lease({})), ...classesCheck({ kind: "absent" })]).toEqual([]);
  });
});

describe("redaction", () => {
  test("removes values, keeps keys", () => {
    const stack = aStack(
      "web",
      { outputs: { url: "u" } },
      { config: { "a:b": "v" }, envRefs: { T: { type: "Literal", literal: { value: "v" } } } },
    );
    const redacted = redactObject({ ...stack, metadata: { ...stack.metadata, managedFields: [{ manager: "m" }] } });
    expect(redacted).toMatchObject({
      spec: { config: { "a:b": "[removed]" }, envRefs: { T: { literal: { value: "[removed]" } } } },
      status: { outputs: { url: "[removed]" } },
    });
    expect(JSON.stringify(redacted)).not.toContain("managedFields");
  });

  test.each([
    `pul-${"0123456789".repeat(4)}`,
    `ghp_${"a".repeat(36)}`,
    "AKIAABCDEFGHIJKLMNOP",
    "https://user:secret@host/path",
    "Authorization: Bearer abcdefghijklmnopqrstuvwxyz",
    "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
  ])("removes %p", (secret) => {
    expect(redactText(`before ${secret} after`)).toContain("[removed]");
    expect(redactText(secret)).not.toBe(secret);
  });
});
