import { workspaceKind, type Stack, type Workspace } from "@pko/api";
import { describe, expect, test } from "bun:test";

import { render } from "../output/render.ts";
import { expectGolden } from "../testing/golden.ts";
import { aStack, condition, notReady, now, ready } from "../testing/objects.ts";
import type { Context } from "../context.ts";
import {
  isPreparedOrFailed,
  isSuspended,
  refreshUpdate,
  requestIn,
  thenRefresh,
  warningBlocks,
  withSuspended,
} from "./open-shell.ts";

const input = (options: Record<string, string | boolean>) => ({ args: ["orders"], options });

describe("what is requested", () => {
  test("an hour, and a refresh at the end, unless the user wants something else", () => {
    expect(requestIn(input({ refresh: true }))).toMatchObject({ name: "orders", keepMs: 3_600_000, refreshes: true });
    expect(requestIn(input({ refresh: false, for: "30m" }))).toMatchObject({ keepMs: 1_800_000, refreshes: false });
  });

  test.each(["9h", "0s", "soon"])("not %s", (time) => {
    expect(() => requestIn(input({ for: time }))).toThrow("is not a duration of at most 8h");
  });
});

describe.each([80, 140])("the warning at %d columns", (columns) => {
  test.each([
    ["shell", aStack("orders"), { refreshes: true }],
    ["shell-suspended", aStack("orders", {}, { suspend: true }), { refreshes: false }],
  ])("%s", (name, stack, request) => {
    expectGolden(`${name}-${columns}.txt`, render(warningBlocks(stack, request), { width: columns, color: false }));
  });
});

describe("the Stack is suspended", () => {
  const suspended = aStack("orders", { conditions: notReady("Reconciling", "Suspended", "suspended") });
  test.each([
    ["when the operator reports it", suspended, true],
    [
      "not while the status is about an older spec",
      { ...suspended, metadata: { name: "orders", generation: 2 } },
      false,
    ],
    ["not while it is ready", aStack("orders", { conditions: ready("") }), false],
  ])("%s", (_, stack, expected) => {
    expect(isSuspended(stack)).toBe(expected);
  });
});

describe("a workspace can be used", () => {
  const { apiVersion, kind } = workspaceKind;
  const workspace = (status: "True" | "False", reason: string, address?: string): Workspace => ({
    apiVersion,
    kind,
    metadata: { name: "orders", generation: 1 },
    status: {
      observedGeneration: 1,
      conditions: [condition("Ready", status, [reason, ""])],
      ...(address !== undefined && { address }),
    },
  });
  test.each([
    ["when it is prepared and has a pod", workspace("True", "Succeeded", "10.0.0.1:50051"), true],
    ["not while it is idle", workspace("True", "Succeeded"), false],
    ["not while its pod starts", workspace("False", "WaitingForReplicas"), false],
    ["even if it cannot be prepared: a shell may find out why", workspace("False", "InstallationFailed"), true],
  ])("%s", (_, each, expected) => {
    expect(isPreparedOrFailed(each)).toBe(expected);
  });
});

test("the Stack is resumed if the event cannot be created", async () => {
  let stack = aStack("orders");
  const client = {
    get: async () => await Promise.resolve(stack),
    create: async () => await Promise.reject(new Error("etcd has no leader")),
    patch: async (...args: [unknown, unknown, { patch: { body: Pick<Stack, "metadata" | "spec"> } }]) => {
      const { spec, metadata } = args[2].patch.body;
      stack = { ...stack, metadata: { ...stack.metadata, ...metadata }, spec: { ...stack.spec, ...spec } };
      return await Promise.resolve(stack);
    },
  };
  const io = { now: () => now, err: () => undefined };
  const context = { client, io, namespace: "shop" } as unknown as Context;
  const run = async (): Promise<number> => await Promise.resolve(0);
  expect(await withSuspended(context, { stack, user: "alice", run }).catch(String)).toContain("etcd has no leader");
  expect(stack.spec.suspend as unknown).toBeNull();
});

describe("the refresh at the end", () => {
  const broken = new Error("the connection broke");
  test.each([
    ["is requested when the shell is closed", { opens: true, error: undefined, count: 1 }],
    ["is requested when the connection breaks", { opens: true, error: broken, count: 1 }],
    ["is not requested if no shell was opened", { opens: false, error: broken, count: 0 }],
  ])("%s", async (_, { opens, error, count }) => {
    let requested = 0;
    const attach = async (opened: () => void): Promise<number> => {
      if (opens) opened();
      return await (error ? Promise.reject(error) : Promise.resolve(0));
    };
    const refresh = async (): Promise<void> => await Promise.resolve(void (requested += 1));
    expect(await thenRefresh(attach, refresh).catch((cause: unknown) => cause)).toBe(error ?? 0);
    expect(requested).toBe(count);
  });

  test("belongs to the Stack, so that history lists it", () => {
    expect(refreshUpdate(aStack("orders")).metadata.labels).toMatchObject({ "pulumi.com/stack-name": "orders" });
  });
});
