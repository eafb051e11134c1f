import { describe, expect, test } from "bun:test";

import type { StackSpec, StackStatus } from "@pko/api";

import { aStack } from "../testing/objects.ts";
import { classesCheck, crdCheck, kubernetesCheck, operatorCheck, policyChecks } from "./cluster.ts";
import { migrationDifferences } from "./migration.ts";
import { redactObject, redactText } from "./redact.ts";

describe("migration", () => {
  type Template = NonNullable<NonNullable<StackSpec["workspaceTemplate"]>["spec"]>;
  const inPod = (spec: object, more: Template = {}): Partial<StackSpec> => ({
    workspaceTemplate: { spec: { ...more, podTemplate: { spec } } },
  });
  const podSpec = "spec.workspaceTemplate.spec.podTemplate.spec";
  const cases: [string, Partial<StackSpec>, StackStatus | undefined, string | undefined][] = [
    ["nothing special", {}, undefined, undefined],
    ["a running update", {}, { currentUpdate: { name: "web-1" } }, "status.currentUpdate"],
    ["plain http", { projectRepo: "http://git/web.git", branch: "main" }, undefined, "spec.projectRepo"],
    ["https", { projectRepo: "https://user@git/web.git", branch: "main" }, undefined, undefined],
    ["an unknown SSH host", { projectRepo: "git@git.acme.com:web.git", branch: "main" }, undefined, "spec.gitAuth"],
    [
      "an SSH host without a user",
      { projectRepo: "ssh://git.acme.com/web", branch: "main" },
      undefined,
      "spec.gitAuth",
    ],
    ["an SSH host in the short form", { projectRepo: "git.acme.com:web", branch: "main" }, undefined, "spec.gitAuth"],
    ["a known SSH host without a user", { projectRepo: "ssh://GitHub.com/a/b", branch: "main" }, undefined, undefined],
    ["a known SSH host", { projectRepo: "git@github.com:acme/web.git", branch: "main" }, undefined, undefined],
    [
      "a custom image",
      { workspaceTemplate: { spec: { image: "mine:1" } } },
      undefined,
      "spec.workspaceTemplate.spec.image",
    ],
    [
      "a custom image in the pod template",
      inPod({ containers: [{ name: "pulumi", image: "mine:1" }] }),
      undefined,
      "spec.workspaceTemplate.spec.podTemplate.spec.containers",
    ],
    ["the image of another container", inPod({ containers: [{ name: "proxy", image: "p:1" }] }), undefined, undefined],
    ["a pod that runs as root", inPod({ securityContext: { runAsUser: 0 } }), undefined, podSpec],
    [
      "a container that may run as root",
      inPod({ containers: [{ name: "pulumi", securityContext: { runAsNonRoot: false } }] }),
      undefined,
      podSpec,
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
      podSpec,
    ],
    ["a hostPath volume", inPod({ volumes: [{ name: "h", hostPath: { path: "/" } }] }), undefined, podSpec],
    ["a file backend", { backend: "file:///state" }, undefined, "spec.backend"],
    [
      "a verbose log",
      { workspaceTemplate: { spec: { pulumiLogLevel: 9 } } },
      undefined,
      "spec.workspaceTemplate.spec.pulumiLogLevel",
    ],
    ["three failures", {}, { lastUpdate: { state: "failed", failures: 3 } }, "status.lastUpdate.failures"],
    [
      "expectNoRefreshChanges",
      { refresh: true, expectNoRefreshChanges: true },
      undefined,
      "spec.expectNoRefreshChanges",
    ],
    ["values of Secrets", { configRef: { a: { name: "b", key: "c" } } }, undefined, "spec.configRef"],
    ["long outputs", {}, { outputs: { big: "x".repeat(20_000) } }, "status.outputs.big"],
    ["an Env reference", { envRefs: { A: { type: "Env", env: { name: "B" } } } }, undefined, "spec.envRefs.A.type"],
    ["a deprecated field", { accessTokenSecret: "t", oidc: {} }, undefined, "spec.oidc"],
  ];
  test.each(cases)("%s", (...[, spec, status, field]) => {
    const fields = migrationDifferences([aStack("web", status, spec)]).map((difference) => difference.field);
    if (field === undefined) expect(fields).toEqual([]);
    else expect(fields).toContain(field);
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
        name: "web",
        field: "spec.prerequisites",
        fix: "set preview to false in Stack db, or remove the prerequisite",
      },
    ]);
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
      "you may not get customresourcedefinitions.apiextensions.k8s.io in the whole cluster",
    );
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
