import { describe, expect, test } from "bun:test";
import type { StartRequest } from "../run.ts";
import type { PrepareRequest, StackSettings } from "../source.ts";
import { agreedVersion, prepareFromV1, prepareIn, startIn, wrongStack, type ContractVersion } from "./versions.ts";

describe("operator and agent use the older of their versions", () => {
  const cases: readonly (readonly [agent: number, agreed: ContractVersion | undefined])[] = [
    [0, undefined],
    [1, 1],
    [2, 2],
    [3, 2],
  ];
  for (const [agent, agreed] of cases) {
    test(`an agent of version ${agent}: ${agreed ?? "none"}`, () => expect(agreedVersion(agent)).toBe(agreed));
  }
});

const dev: StackSettings = { name: "dev", create: true, config: [], environments: [] };
const source: PrepareRequest["source"] = { kind: "local", dir: "/app" };

const remedy =
  "; the operator replaces the pod when no run is active in it; if the agent's image tag has not changed, delete the pod";
const older = "the agent in the workspace's pod is older than the operator and ";

describe("a request to prepare", () => {
  test("is sent unchanged to an agent of the same version", () => {
    const request = { source, stacks: [dev, { ...dev, name: "prod" }] };
    expect(prepareIn(2, request)).toEqual({ ok: true, request });
  });

  test("is translated to version 1, which has one stack, and back", () => {
    const request = { source, stacks: [dev] };
    const origin = { workspace: "web", stack: "web" };
    expect(prepareIn(1, { ...request, origin })).toEqual({ ok: true, request: { source, stack: dev } });
    expect(prepareFromV1({ source, stack: dev })).toEqual(request);
  });

  test("is translated to version 1 without the known versions of the CLI, which the agent then reads itself", () => {
    const request = { source, stacks: [dev], knownClis: [{ cli: "a", version: "3.259.0" }] };
    expect(prepareIn(1, request)).toEqual({ ok: true, request: { source, stack: dev } });
  });

  test("compares no commits in version 1", () => {
    const git = { kind: "git", url: "https://host/repo", commit: "a".repeat(40) } as const;
    const compareWith = { commit: "b".repeat(40), pathFilters: ["infra/**"] };
    expect(prepareIn(2, { source: { ...git, compareWith }, stacks: [dev] })).toMatchObject({
      request: { source: { compareWith } },
    });
    expect(prepareIn(1, { source: { ...git, compareWith }, stacks: [dev] })).toEqual({
      ok: true,
      request: { source: git, stack: dev },
    });
  });

  const unsupported: Record<string, { readonly request: PrepareRequest; readonly message: string }> = {
    "without a stack": { request: { source, stacks: [] }, message: "supports exactly one stack per Workspace" },
    "with several stacks": {
      request: { source, stacks: [dev, { ...dev, name: "prod" }] },
      message: "supports exactly one stack per Workspace",
    },
    "with a field of a later version": {
      // @ts-expect-error -- a field that version 2 may get
      request: { source: { ...source, readOnly: true }, stacks: [dev] },
      message: "does not support source.readOnly",
    },
  };
  for (const [name, { request, message }] of Object.entries(unsupported)) {
    test(`${name} is not supported by version 1, and the message has the remedy`, () => {
      expect(prepareIn(1, request)).toEqual({ ok: false, message: `${older}${message}${remedy}` });
    });
  }
});

describe("a request to start a run", () => {
  const request: StartRequest = {
    runId: "a",
    operation: { kind: "up", message: "x" },
    stack: "dev",
    lostRuns: [{ from: "2026-01-01T00:00:00Z", to: "2026-01-01T00:01:00Z", hostname: "web-0", pid: 7 }],
    origin: { update: "web-1", stack: "web" },
    preparation: "a",
  };

  test("is sent unchanged to an agent of the same version", () => {
    expect(startIn(2, request)).toEqual({ ok: true, request });
  });

  test("has no origin and no preparation in version 1, and neither a stack nor lost runs, because its agents break locks by time alone", () => {
    expect(startIn(1, request)).toEqual({ ok: true, request: { runId: "a", operation: { kind: "up", message: "x" } } });
  });

  test("is not supported by version 1 if an option would be lost, because the run could do more than requested", () => {
    // @ts-expect-error -- an option that version 2 may get
    const translated = startIn(1, { ...request, operation: { kind: "destroy", excludeProtected: true } });
    const message = `${older}does not support operation.excludeProtected${remedy}`;
    expect(translated).toEqual({ ok: false, message });
  });
});

describe("an agent of version 1 runs", () => {
  const cases: readonly (readonly [stack: string, prepared: string | undefined, runs: boolean])[] = [
    ["dev", "dev", true],
    ["acme/shop/dev", "acme/shop/dev", true],
    ["dev", undefined, true],
    ["prod", "dev", false],
    ["acme/dev", "dev", false],
    ["dev", "acme/shop/dev", false],
    ["acme/shop/dev", "other/shop/dev", false],
  ];
  for (const [stack, prepared, runs] of cases) {
    const text = `${stack} ${runs ? "" : "not "}where ${prepared ?? "nothing"} is prepared`;
    test(text, () => expect(wrongStack(stack, prepared) === undefined).toBe(runs));
  }
});
