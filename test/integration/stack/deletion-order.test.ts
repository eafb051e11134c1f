/** Stacks that are deleted together are destroyed in reverse order of their dependencies. */
import { stackKind, type StackSpec } from "@pko/api";
import { builtin } from "@pko/kube";
import { waitFor } from "@pko/testkit";
import { expect, test } from "bun:test";

import { reasonOf, Stage, testTimeoutMs } from "./harness.ts";

const on = (...names: string[]): Partial<StackSpec> => ({
  destroyOnFinalize: true,
  prerequisites: names.map((name) => ({ name })),
});

/** The Stacks whose runs of this type started, in order. */
const started = (stage: Stage, type: string): string[] =>
  stage.simulator.runs.filter(({ spec }) => spec?.type === type).map(({ spec }) => spec?.workspaceName ?? "");

const isBefore = (order: readonly string[], first: string, then: string): boolean =>
  order.indexOf(first) >= 0 && order.indexOf(first) < order.indexOf(then);

test(
  "three levels that are deleted one by one, in the wrong order, are destroyed from the top",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    const levels = { network: on(), storage: on(), cluster: on("network"), data: on("storage", "network") };
    const all = { ...levels, app: on("cluster", "data"), jobs: on("data") };
    for (const [name, spec] of Object.entries(all)) await stage.stack(name, spec);
    for (const name of Object.keys(all)) await stage.isReady(name);
    for (const name of Object.keys(all)) await stage.delete(name);
    for (const name of Object.keys(all)) await stage.isDeleted(name);
    const order = started(stage, "destroy");
    expect(order.toSorted()).toEqual(Object.keys(all).toSorted());
    for (const [name, { prerequisites = [] }] of Object.entries(all)) {
      for (const { name: below = "" } of prerequisites)
        expect([name, below, isBefore(order, name, below)]).toEqual([name, below, true]);
    }
  },
  testTimeoutMs,
);

test(
  "a Stack waits for the deletion of a live dependent for 15 seconds, and is then destroyed with a warning",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    await stage.stack("base", on());
    await stage.stack("app", on("base"));
    await stage.isReady("base");
    await stage.isReady("app");
    await stage.delete("base");
    const waiting = await stage.becomes("base", "waiting", (stack) => reasonOf(stack) === "WaitingForDependents");
    expect(waiting.status?.waiting?.for).toBe("Stack app");
    expect(started(stage, "destroy")).toEqual([]);
    stage.jump(16_000);
    await stage.isDeleted("base");
    expect(started(stage, "destroy")).toEqual(["base"]);
    const warned = async () => {
      const { items } = await stage.client.list(builtin.events, { namespace: stage.namespace });
      return items.find(({ reason }) => reason === "StackDependentsIgnored")?.regarding;
    };
    expect(await waitFor(warned)).toMatchObject({ kind: stackKind.kind, name: "base" });
  },
  testTimeoutMs,
);

test(
  "Stacks that depend on each other are destroyed in any order",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    await stage.stack("one", on());
    await stage.stack("two", on("one"));
    await stage.isReady("one");
    await stage.isReady("two");
    await stage.stack("one", on("two"));
    await stage.becomes("one", "in a cycle", (stack) => reasonOf(stack) === "SpecInvalid");
    await stage.delete("one");
    await stage.delete("two");
    await stage.isDeleted("one");
    await stage.isDeleted("two");
    expect(started(stage, "destroy").toSorted()).toEqual(["one", "two"]);
  },
  testTimeoutMs,
);
