/** The objects that a Stack generates, and the small pure parts beneath its plan. */
import { describe, expect, test } from "bun:test";
import { normaliseStack, type StackSpec, type Update } from "@pko/api";

import { parseRefs } from "../sources/git-remote.ts";
import { programStatus } from "../program/controller.ts";
import { programView } from "../sources/program-source.ts";
import { destroyDueOf } from "./due.ts";
import { covers, merged } from "./merge.ts";
import { outputsSecret, versionsOf } from "./outputs.ts";
import { cycleFrom, prerequisiteView } from "./prerequisites.ts";
import { noted } from "./result.ts";
import { ago, anUpdate, aTrigger, failed, now, stackOf, succeeded, viewOf, type Setting } from "./testing/views.ts";
import { nameOfUpdate, parseTrigger, triggerText } from "./trigger.ts";
import { updateObject, type UpdateRequest } from "./update-object.ts";
import { updateView } from "./update-view.ts";
import type { UpdateView } from "./view.ts";
import { isAsWanted, workspaceObject } from "./workspace-object.ts";

function generated(spec: Partial<StackSpec>) {
  const stack = stackOf({ spec });
  const normal = normaliseStack(stack);
  if (!normal.ok) throw new Error(JSON.stringify(normal.problems));
  const workspace = workspaceObject(stack, normal.value, { program: { name: "program", generation: 1 } });
  return { stack, spec: normal.value, workspace };
}

describe("the Workspace", () => {
  test("of a plain Stack", () => {
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
        uid: "uid-of-web",
        controller: true,
        blockOwnerDeletion: false,
      },
    ]);
  });

  test("a template that says what its source is patches the generated one", () => {
    const stack = stackOf({
      spec: {
        projectRepo: "https://host/repo.git",
        branch: "main",
        workspaceTemplate: { spec: { git: { dir: "other" } } },
      },
    });
    const normal = normaliseStack(stack);
    if (!normal.ok) throw new Error("invalid");
    const git = { url: "https://host/repo.git", ref: "c", dir: "one" };
    expect(workspaceObject(stack, normal.value, { git }).spec?.git).toEqual({ ...git, dir: "other" });
    const info = { projectInfo: { name: "p", runtime: "yaml" } };
    expect(workspaceObject(stack, normal.value, info).spec?.git).toBeUndefined();
  });

  test("what others add to it does not matter, what they change and what is no longer wanted does", () => {
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
    expect(isAsWanted(stored, workspace)).toBe(true);
    expect(isAsWanted({ ...stored, spec: { ...stored.spec, env: [{ name: "A", value: "2" }] } }, workspace)).toBe(
      false,
    );
    expect(isAsWanted(stored, generated({}).workspace)).toBe(false);
  });

  test("names of volumes are valid whatever the Secret is called", () => {
    const name = `a.${"b".repeat(80)}`;
    const { workspace } = generated({ secretsRef: { k: { type: "Secret", secret: { name, key: "x" } } } });
    expect(workspace.spec?.podTemplate?.spec?.volumes?.[0]?.name).toMatch(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])$/);
  });

  test("carries the request, so that a preparation that has failed is tried again", () => {
    const stack = stackOf({ request: "now" });
    const normal = normaliseStack(stack);
    if (!normal.ok) throw new Error("invalid");
    const { metadata } = workspaceObject(stack, normal.value, { program: { name: "program", generation: 1 } });
    expect(metadata.annotations?.["pulumi.com/reconciliation-request"]).toBe("now");
  });
});

describe("a merge", () => {
  const cases: [string, object, object, object][] = [
    ["adds", { a: 1 }, { b: 2 }, { a: 1, b: 2 }],
    ["replaces", { a: 1 }, { a: 2 }, { a: 2 }],
    ["removes", { a: 1, b: 2 }, { a: null }, { b: 2 }],
    ["goes deep", { a: { b: 1, c: 2 } }, { a: { b: 3 } }, { a: { b: 3, c: 2 } }],
    [
      "joins lists of named things",
      { env: [{ name: "A", value: "1" }] },
      { env: [{ name: "B" }, { name: "A", value: "2" }] },
      { env: [{ name: "A", value: "2" }, { name: "B" }] },
    ],
    ["replaces other lists", { args: [1, 2] }, { args: [3] }, { args: [3] }],
    ["replaces another type", { a: { b: 1 } }, { a: "x" }, { a: "x" }],
  ];
  for (const [what, base, overlay, result] of cases) {
    test(what, () => expect(merged({ ...base }, { ...overlay })).toEqual({ ...result }));
  }

  test("null is covered by nothing", () => {
    expect(covers({ a: 1 }, { a: 1, b: null })).toBe(true);
    expect(covers({ b: 1 }, { b: null })).toBe(false);
  });
});

describe("a prerequisite", () => {
  const table: readonly (readonly [string, Setting, ReturnType<typeof prerequisiteView>["last"], boolean])[] = [
    ["that never ran", {}, "none", false],
    ["that is deployed", { last: succeeded() }, "deployed", true],
    ["that failed", { last: failed() }, "failed", true],
    ["that was previewed", { last: succeeded({ type: "preview" }) }, "previewed", true],
    ["that was destroyed", { last: succeeded({ type: "destroy" }) }, "none", true],
    ["whose spec has changed", { generation: 2, last: succeeded() }, "deployed", false],
    ["that was asked to run", { request: "now", last: succeeded() }, "deployed", false],
    [
      "that has run as it was asked",
      { request: "now", last: succeeded({ reconcileRequest: "now" }) },
      "deployed",
      true,
    ],
    ["whose request was taken back", { last: succeeded({ reconcileRequest: "now" }) }, "deployed", true],
  ];
  for (const [what, setting, last, isCurrent] of table) {
    test(what, () => expect(prerequisiteView("web", stackOf(setting))).toMatchObject({ last, isCurrent }));
  }
});

describe("the Update", () => {
  const trigger = { type: "up", generation: 1, revision: "c", reconcileRequest: "", inputs: "" } as const;

  test("remembers why it runs", () => {
    const { stack, spec, workspace } = generated({
      destroyOnFinalize: true,
      targets: ["urn:a"],
      refresh: true,
      expectNoRefreshChanges: true,
      runProgram: true,
    });
    const update = updateObject({ stack, spec, workspace, trigger, why: "first" });
    expect(updateView(update)).toMatchObject({ state: "running", held: true, trigger, type: "up" });
    expect(update.spec).toMatchObject({
      refresh: true,
      expectNoRefreshChanges: true,
      target: ["urn:a"],
      ttlAfterCompleted: "86400s",
    });
    const destroy = destroyOf({ stack, spec, workspace });
    expect(destroy).toEqual({
      message: "Stack default/web: the deletion of the Stack",
      workspaceName: "web",
      stackName: "dev",
      type: "destroy",
      runProgram: true,
      ttlAfterCompleted: "86400s",
    });
  });

  const destroyOf = (of: Pick<UpdateRequest, "stack" | "spec" | "workspace">): Update["spec"] =>
    updateObject({ ...of, trigger: { ...trigger, type: "destroy" }, why: "destroy" }).spec;

  test("of a destroy is as the template says, too", () => {
    const target = ["urn:b"];
    const template = (spec: object): ReturnType<typeof generated> =>
      generated({ destroyOnFinalize: true, targets: ["urn:a"], updateTemplate: { spec } });
    expect(destroyOf(template({ remove: true, message: "bye" }))).toMatchObject({ remove: true, message: "bye" });
    expect(destroyOf(template({ refresh: true }))).toMatchObject({ refresh: true });
    expect(destroyOf(template({ target }))).toMatchObject({ target });
    expect(destroyOf(template({ parallel: 2 }))).not.toHaveProperty("target");
  });

  test("of a destroy keeps the emptied Pulumi stack and does not refresh, unless the template asks for it", () => {
    const destroy = destroyOf(generated({ destroyOnFinalize: true, refresh: true }));
    expect(destroy).not.toHaveProperty("remove");
    expect(destroy).not.toHaveProperty("refresh");
  });

  test("is named after its trigger and the update before it", () => {
    const stack = stackOf({ last: succeeded() });
    const name = nameOfUpdate(stack, trigger);
    expect(nameOfUpdate(stackOf({ last: succeeded() }), { ...trigger })).toBe(name);
    const others = [
      nameOfUpdate(stack, { ...trigger, revision: "d" }),
      nameOfUpdate(stack, { ...trigger, generation: 2 }),
      nameOfUpdate(stack, { ...trigger, reconcileRequest: "x" }),
      nameOfUpdate(stack, { ...trigger, inputs: "a.b@c" }),
      nameOfUpdate(stack, { ...trigger, digest: "sha256:a" }),
      nameOfUpdate(stack, { ...trigger, type: "destroy" }),
      nameOfUpdate(stackOf({ last: succeeded({ lastResyncTime: ago(1) }) }), trigger),
      nameOfUpdate(stackOf({ last: failed({ lastResyncTime: ago(3600) }) }), trigger),
      nameOfUpdate(stackOf({}), trigger),
    ];
    expect(new Set([name, ...others]).size).toBe(10);
  });

  test("a trigger survives its way, nonsense does not", () => {
    for (const each of [trigger, { ...trigger, digest: "sha256:a" }]) {
      expect(parseTrigger(triggerText(each))).toEqual(each);
    }
    for (const text of [undefined, "", "{", "null", "[]", '{"type":"rm"}']) expect(parseTrigger(text)).toBeUndefined();
  });

  test("of the reference that met a conflict is known by its words", () => {
    const update = (message: string): Update => ({
      apiVersion: "auto.pulumi.com/v1alpha1",
      kind: "Update",
      metadata: { name: "u" },
      spec: { type: "up" },
      status: {
        message,
        conditions: [
          { type: "Failed", status: "True", reason: "UpdateFailed", message: "", lastTransitionTime: ago(0) },
        ],
      },
    });
    expect(updateView(update("error: [409] Conflict: Another update is currently in progress.")).failure).toBe(
      "conflict",
    );
    expect(updateView(update("error: something else")).failure).toBeUndefined();
  });
});

describe("the end of an update", () => {
  test("is strictly later than the one before, to the second", () => {
    const view = viewOf({ last: succeeded({ lastResyncTime: ago(10) }) });
    const end = (endedAt: number) => noted(view, anUpdate({ state: "succeeded", endedAt })).lastUpdate.lastResyncTime;
    expect(end(now)).toBe(ago(0));
    expect(end(now - 10_000)).toBe(ago(9));
    expect(end(now - 3_600_000)).toBe(ago(9));
  });

  test("keeps the last commit that succeeded", () => {
    const view = viewOf({ last: succeeded({ lastSuccessfulCommit: "good" }) });
    const { lastUpdate } = noted(view, anUpdate({ state: "failed", endedAt: now, message: "no" }));
    expect(lastUpdate).toMatchObject({
      state: "failed",
      lastSuccessfulCommit: "good",
      lastAttemptedCommit: "1",
      failures: 1,
    });
  });

  test("keeps the digest of what was run, of a destroy that of the update before it", () => {
    const { lastUpdate } = noted(
      viewOf({}),
      anUpdate({ state: "succeeded", trigger: aTrigger({ revision: "v1", digest: "sha256:a" }) }),
    );
    expect(lastUpdate).toMatchObject({ lastAttemptedCommit: "v1", lastSuccessfulCommit: "v1", digest: "sha256:a" });
    const view = viewOf({ deleting: true, last: lastUpdate });
    const due = view.spec.ok ? destroyDueOf(view, view.spec.value) : undefined;
    expect(due).toMatchObject({ kind: "now", trigger: { revision: "v1", digest: "sha256:a" } });
  });

  test("counts failures of the same content alone", () => {
    const failures = (digest: string): number | undefined => {
      const last = failed({ failures: 2, lastAttemptedCommit: "v1", digest: "sha256:a" });
      const update = anUpdate({ state: "failed", trigger: aTrigger({ revision: "v1", digest }) });
      return noted(viewOf({ last }), update).lastUpdate.failures;
    };
    expect([failures("sha256:a"), failures("sha256:b")]).toEqual([3, 1]);
  });

  test("masks secret outputs, and leaves out what is too long", () => {
    const values = [
      { name: "a", secret: true, value: "canary" },
      { name: "b", secret: false, value: [1] },
      { name: "c", secret: false, value: "x".repeat(20_000) },
    ];
    const view = viewOf({ outputs: { kind: "read", values, former: { data: {}, versions: {} } } });
    const { outputs } = noted(view, anUpdate({ state: "succeeded", endedAt: now }));
    expect(outputs).toEqual({ a: "[secret]", b: [1], c: "[too long]" });
  });

  test("changes the versions of those outputs alone that changed", () => {
    const stack = stackOf({});
    const first = outputsSecret(stack, "u1", {
      kind: "read",
      values: [
        { name: "a", secret: false, value: 1 },
        { name: "b", secret: true, value: "x" },
      ],
      former: { data: {}, versions: {} },
    });
    const second = outputsSecret(stack, "u2", {
      kind: "read",
      values: [
        { name: "a", secret: false, value: 2 },
        { name: "b", secret: true, value: "x" },
        { name: "odd name", secret: false, value: {} },
      ],
      former: { data: first.data ?? {}, versions: versionsOf(first) },
    });
    expect(Object.values(versionsOf(second)).toSorted()).toEqual(["u1", "u2", "u2"]);
    expect(versionsOf(second)).toMatchObject({ a: "u2", b: "u1" });
  });
});

describe("whether anything was deployed", () => {
  const after = (setting: Setting, update: Partial<UpdateView>) =>
    noted(viewOf(setting), anUpdate({ state: "succeeded", endedAt: now, ...update })).deployed;
  const last = succeeded({ type: "preview" });

  test("a first preview deploys nothing, and neither do those that follow", () => {
    expect(after({}, { type: "preview" })).toBe(false);
    expect(after({ last, status: { deployed: false } }, { type: "preview" })).toBe(false);
  });

  test("an update does, failed or not, and that is never forgotten", () => {
    expect(after({ last, status: { deployed: false } }, {})).toBe(true);
    expect(after({}, { state: "failed" })).toBe(true);
    expect(after({ last: succeeded(), status: { deployed: true } }, { type: "preview" })).toBe(true);
  });

  test("one that was withdrawn before it began does not", () => {
    const withdrawn = { state: "failed", failure: "withdrawn" } as const;
    expect(after({ last, status: { deployed: false } }, withdrawn)).toBe(false);
    expect(after({}, withdrawn)).toBeUndefined();
  });

  test("what an operator without that note has done is not known", () => {
    expect(after({ last }, { type: "preview" })).toBeUndefined();
  });
});

describe("sources", () => {
  test("refs: a tag is its commit", () => {
    const [tag, commit] = ["a".repeat(40), "b".repeat(40)];
    expect([...parseRefs(`${tag}\trefs/tags/v1\n${commit}\trefs/tags/v1^{}\nnonsense\n\n`)]).toEqual([
      ["refs/tags/v1", commit],
    ]);
  });

  test("a Program's archive of another operator is an alias of the same generation", () => {
    const artifact = { path: "p", url: "u", revision: "3", digest: "sha256:a", lastUpdateTime: ago(0) };
    const program = (generation: number) => ({
      apiVersion: "pulumi.com/v1",
      kind: "Program",
      metadata: { name: "p", generation },
      status: { observedGeneration: 3, artifact },
    });
    expect(programView(program(3), "p")).toMatchObject({ revision: "3", aliases: ["sha256:a"] });
    expect(programView(program(4), "p")).toMatchObject({ revision: "4", aliases: [] });
    expect(programStatus(program(3))).toEqual({ observedGeneration: 3, artifact });
    expect(programStatus(program(4))).toEqual({ observedGeneration: 4 });
  });

  test("circles are found, also behind a fork", () => {
    const edges: Record<string, string[]> = { a: ["b", "c"], b: ["d"], c: ["a"], d: ["b"] };
    expect(cycleFrom("a", (name) => edges[name] ?? [])).toEqual(["a", "c", "a"]);
    expect(cycleFrom("x", () => [])).toEqual([]);
  });
});
