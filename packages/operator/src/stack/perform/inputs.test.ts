import { describe, expect, test } from "bun:test";
import type { Program } from "@pko/api";
import type { ApiObject, Client, KubeObject, ObjectRef, Store } from "@pko/kube";
import type { Secret } from "kubernetes-types/core/v1";

import { programs } from "../../kinds.ts";
import { unlimitedSlots } from "../../shared/channels/slots.ts";
import { observeStack, type StackWorld } from "../observe/index.ts";
import { planStack } from "../rules/index.ts";
import { stackOf } from "../testing/views.ts";
import { validSpec } from "../view.ts";
import { performStack } from "./index.ts";

const storeOf = <T extends KubeObject>(...objects: T[]): Store<T> => ({
  get: (key) => objects.find(({ metadata }) => `${metadata.namespace}/${metadata.name}` === key),
  list: () => objects,
  size: objects.length,
  byIndex: () => [],
  active: () => objects,
  activeByIndex: () => [],
  archived: () => [],
  restsUntil: () => undefined,
  hasSynced: true,
  subscribe: () => () => undefined,
});

const secret = (namespace: string, name: string): ApiObject<Secret> => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name, namespace, uid: name, resourceVersion: "1" },
  data: { password: Buffer.from("hunter2").toString("base64") },
});

/** A Stack whose first update is due. Every Secret exists, except "lost". */
function setting(spec: NonNullable<Parameters<typeof stackOf>[0]>["spec"] = {}) {
  const stack = stackOf({ spec });
  const { namespace = "", name = "" } = stack.metadata;
  const program: Program = {
    apiVersion: programs.apiVersion,
    kind: programs.kind,
    metadata: { name: "program", namespace, generation: 1 },
  };
  const reads: string[] = [];
  const find = async (_: unknown, ref: ObjectRef): Promise<unknown> => {
    reads.push(ref.name);
    return ref.name === "lost" ? undefined : secret(namespace, ref.name);
  };
  const poller = { forget: () => undefined } as unknown;
  const world: StackWorld = {
    client: { find } as unknown as Client,
    stacks: storeOf(stack),
    workspaces: storeOf(),
    updates: storeOf(),
    programs: storeOf(program),
    approvals: storeOf(),
    approvalPolicy: { state: () => ({ kind: "unknown" }) },
    classOf: () => ({ kind: "none" }),
    git: poller as StackWorld["git"],
    flux: poller as StackWorld["flux"],
    comparisons: poller as StackWorld["comparisons"],
    suspension: { isOn: false, follow: () => () => undefined },
    slots: unlimitedSlots,
  };
  return { world, key: `${namespace}/${name}` as const, reads };
}

describe("a pass in which an update is due", () => {
  const fromSecret = (name: string) => ({ type: "Secret", secret: { name, key: "password" } }) as const;

  test("reads each Secret once, although the configuration and the environment use it", async () => {
    const { world, key, reads } = setting({
      secretsRef: { password: fromSecret("database"), token: fromSecret("lost") },
      envRefs: { PASSWORD: fromSecret("database"), TOKEN: fromSecret("token") },
    });
    const { signal } = new AbortController();
    const view = await observeStack(world, key, { now: Date.now(), monotonic: 0, memory: undefined, signal });
    const spec = view && validSpec(view);
    if (!view || !spec) throw new Error("no valid Stack");
    expect(reads).toEqual(["database", "lost"]);
    expect(planStack(view).steps).toEqual([{ kind: "checkInputs", spec }]);
    const performed = await performStack(world, { kind: "checkInputs", spec }, { view, signal });
    expect(reads).toEqual(["database", "lost", "token"]);
    expect(performed).toMatchObject({ kind: "replan", facts: { missingInputs: [expect.stringContaining("lost")] } });
  });
});
