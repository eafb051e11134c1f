import { describe, expect, test } from "bun:test";
import { normalizeStack } from "@pko/api";

import { generated } from "../testing/generated.ts";
import { stackOf } from "../testing/views.ts";
import { classDefaults } from "./class-defaults.ts";
import { isWorkspaceCurrent, workspaceObject } from "./workspace.ts";

describe("the Workspace with defaults of a class", () => {
  const normalOf = (spec: Parameters<typeof stackOf>[0]["spec"]) => {
    const stack = stackOf({ ...(spec && { spec }) });
    const normal = normalizeStack(stack);
    if (!normal.ok) throw new Error("invalid");
    return { stack, normal: normal.value };
  };
  const template = {
    metadata: { labels: { tier: "default", cost: "shared" } },
    spec: {
      image: "default:1",
      serviceAccountName: "default-account",
      resources: { requests: { cpu: "1", memory: "1Gi" } },
      env: [{ name: "PROXY", value: "default" }],
      envFrom: [{ secretRef: { name: "platform" } }],
      initContainers: [{ name: "tools", image: "tools:1" }],
      podTemplate: {
        spec: { tolerations: [{ key: "builds", operator: "Exists" }], volumes: [{ name: "certs", emptyDir: {} }] },
      },
    },
  };
  const defaults = classDefaults({ namespaceSelector: {}, template });
  const wanted = (spec: Parameters<typeof stackOf>[0]["spec"]) => {
    const { stack, normal } = normalOf(spec);
    return workspaceObject(stack, normal, { origin: { program: { name: "program", generation: 1 } }, defaults });
  };

  test("has all of them if the Stack sets nothing", () => {
    const { spec, metadata } = wanted(undefined);
    expect(spec).toMatchObject({ image: "default:1", serviceAccountName: "default-account" });
    expect(spec?.podTemplate?.spec).toMatchObject({
      initContainers: [{ name: "tools" }],
      tolerations: [{ key: "builds" }],
    });
    expect(metadata.labels).toMatchObject({ tier: "default" });
  });

  test("has what the Stack sets instead, and the rest of the defaults", () => {
    const { spec, metadata } = wanted({
      serviceAccountName: "mine",
      envRefs: { PROXY: { type: "Literal", literal: { value: "mine" } } },
      workspaceTemplate: {
        metadata: { labels: { tier: "mine" } },
        spec: {
          image: "mine:1",
          resources: { requests: { cpu: "2" } },
          podTemplate: { spec: { volumes: [{ name: "data", emptyDir: {} }] } },
        },
      },
    });
    expect(spec).toMatchObject({
      image: "mine:1",
      serviceAccountName: "mine",
      resources: { requests: { cpu: "2", memory: "1Gi" } },
      env: [{ name: "PROXY", value: "mine" }],
    });
    expect(spec?.podTemplate?.spec?.volumes?.map(({ name }) => name)).toEqual(["certs", "data"]);
    expect(metadata.labels).toMatchObject({ tier: "mine", cost: "shared" });
  });

  test("has one source for each variable", () => {
    const { spec } = wanted({ envRefs: { PROXY: { type: "Secret", secret: { name: "mine", key: "proxy" } } } });
    expect(spec?.env).toEqual([{ name: "PROXY", valueFrom: { secretKeyRef: { name: "mine", key: "proxy" } } }]);
  });

  describe("reads variables from the sources of the class before those of the Stack, which take precedence", () => {
    const [platform, team] = [{ secretRef: { name: "platform" } }, { configMapRef: { name: "team" } }];
    const templated = { workspaceTemplate: { spec: { envFrom: [team] } } };
    const cases: [string, Parameters<typeof wanted>[0], object[]][] = [
      ["without any of the Stack", undefined, [platform]],
      ["with envs", { envs: ["team"] }, [platform, team]],
      ["with envSecrets", { envSecrets: ["own"] }, [platform, { secretRef: { name: "own" } }]],
      ["with those of its workspaceTemplate", templated, [platform, team]],
      ["with those of its workspaceTemplate, which replace others", { ...templated, envs: ["o"] }, [platform, team]],
      ["with an empty list", { workspaceTemplate: { spec: { envFrom: [] } }, envs: ["team"] }, [platform]],
    ];
    for (const [what, spec, envFrom] of cases) {
      test(what, () => expect(wanted(spec).spec?.envFrom).toEqual(envFrom));
    }
  });

  test("is not current if the defaults have changed, or are removed with the class", () => {
    const { stack, normal } = normalOf(undefined);
    const present = wanted(undefined);
    const origin = { program: { name: "program", generation: 1 } };
    expect(isWorkspaceCurrent(present, wanted(undefined))).toBe(true);
    expect(isWorkspaceCurrent(present, workspaceObject(stack, normal, { origin }))).toBe(false);
  });
});

describe("the Workspace", () => {
  test("of a Stack without options", () => {
    const { workspace } = generated({});
    expect(workspace.spec).toEqual({
      program: { name: "program", generation: 1 },
      stacks: [{ name: "dev", create: true }],
    });
    expect(workspace.metadata.ownerReferences).toEqual([
      {
        apiVersion: "pulumi.com/v1",
        kind: "Stack",
        name: "web",
        uid: "uid-of-web-3833",
        controller: true,
        blockOwnerDeletion: false,
      },
    ]);
  });

  test("is changed by the source in the template", () => {
    const stack = stackOf({
      spec: {
        projectRepo: "https://host/repo.git",
        branch: "main",
        workspaceTemplate: { spec: { git: { dir: "other" } } },
      },
    });
    const normal = normalizeStack(stack);
    if (!normal.ok) throw new Error("invalid");
    const git = { url: "https://host/repo.git", ref: "c", dir: "one" };
    expect(workspaceObject(stack, normal.value, { origin: { git } }).spec?.git).toEqual({ ...git, dir: "other" });
    const info = { projectInfo: { name: "p", runtime: "yaml" } };
    expect(workspaceObject(stack, normal.value, { origin: info }).spec?.git).toBeUndefined();
  });

  test("is current if others have added fields, and not if they changed fields or a field is no longer wanted", () => {
    const { workspace } = generated({ envRefs: { A: { type: "Literal", literal: { value: "1" } } } });
    const stored = {
      ...workspace,
      spec: {
        ...workspace.spec,
        securityProfile: "restricted",
        env: [
          { name: "B", value: "2" },
          { name: "A", value: "1" },
        ],
      },
    };
    expect(isWorkspaceCurrent(stored, workspace)).toBe(true);
    expect(
      isWorkspaceCurrent({ ...stored, spec: { ...stored.spec, env: [{ name: "A", value: "2" }] } }, workspace),
    ).toBe(false);
    expect(isWorkspaceCurrent(stored, generated({}).workspace)).toBe(false);
  });

  test("has valid volume names for all names of Secrets", () => {
    const name = `a.${"b".repeat(80)}`;
    const { workspace } = generated({ secretsRef: { k: { type: "Secret", secret: { name, key: "x" } } } });
    expect(workspace.spec?.podTemplate?.spec?.volumes?.[0]?.name).toMatch(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])$/);
  });

  test("without a class reads variables from the template's sources instead of the Stack's", () => {
    const workspaceTemplate = { spec: { envFrom: [{ secretRef: { name: "own" } }] } };
    const { workspace } = generated({ envs: ["replaced"], workspaceTemplate });
    expect(workspace.spec?.envFrom).toEqual(workspaceTemplate.spec.envFrom);
  });

  test("has the reconcile request, so that a failed preparation is retried", () => {
    const stack = stackOf({ request: "now" });
    const normal = normalizeStack(stack);
    if (!normal.ok) throw new Error("invalid");
    const origin = { program: { name: "program", generation: 1 } };
    const { metadata } = workspaceObject(stack, normal.value, { origin });
    expect(metadata.annotations?.["pulumi.com/reconciliation-request"]).toBe("now");
  });
});
