import { describe, expect, test } from "bun:test";
import { normalizeStack } from "@pko/api";

import { generated } from "../testing/generated.ts";
import { stackOf } from "../testing/views.ts";
import { isWorkspaceCurrent, workspaceObject } from "./workspace.ts";

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
    expect(workspaceObject(stack, normal.value, { git }).spec?.git).toEqual({ ...git, dir: "other" });
    const info = { projectInfo: { name: "p", runtime: "yaml" } };
    expect(workspaceObject(stack, normal.value, info).spec?.git).toBeUndefined();
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

  test("has the reconcile request, so that a failed preparation is retried", () => {
    const stack = stackOf({ request: "now" });
    const normal = normalizeStack(stack);
    if (!normal.ok) throw new Error("invalid");
    const { metadata } = workspaceObject(stack, normal.value, { program: { name: "program", generation: 1 } });
    expect(metadata.annotations?.["pulumi.com/reconciliation-request"]).toBe("now");
  });
});
