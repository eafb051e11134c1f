/** Stacks that are deleted together are destroyed in reverse order of their dependencies. */
import { stackKind, type StackSpec } from "@pko/api";
import { expect, test } from "bun:test";

import { reasonOf, StackScene, testTimeoutMs } from "./scene.ts";

const on = (...names: string[]): Partial<StackSpec> => ({
  destroyOnFinalize: true,
  prerequisites: names.map((name) => ({ name })),
});

/** The Stacks whose runs of this type started, in order. */
const started = (scene: StackScene, type: string): string[] =>
  scene.simulator.runs.filter(({ spec }) => spec?.type === type).map(({ spec }) => spec?.workspaceName ?? "");

const isBefore = (order: readonly string[], first: string, then: string): boolean =>
  order.indexOf(first) >= 0 && order.indexOf(first) < order.indexOf(then);

test(
  "three levels that are deleted one by one, in the wrong order, are destroyed from the top",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    const levels = { network: on(), storage: on(), cluster: on("network"), data: on("storage", "network") };
    const all = { ...levels, app: on("cluster", "data"), jobs: on("data") };
    for (const [name, spec] of Object.entries(all)) await scene.stack(name, spec);
    for (const name of Object.keys(all)) await scene.isReady(name);
    for (const name of Object.keys(all)) await scene.delete(name);
    for (const name of Object.keys(all)) await scene.isDeleted(name);
    const order = started(scene, "destroy");
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
    await using scene = await StackScene.open();
    await scene.program("program");
    await scene.stack("base", on());
    await scene.stack("app", on("base"));
    await scene.isReady("base");
    await scene.isReady("app");
    await scene.delete("base");
    const waiting = await scene.becomes("base", "waiting", (stack) => reasonOf(stack) === "WaitingForDependents");
    expect(waiting.status?.waiting?.for).toBe("Stack app");
    expect(started(scene, "destroy")).toEqual([]);
    scene.jump(16_000);
    await scene.isDeleted("base");
    expect(started(scene, "destroy")).toEqual(["base"]);
    const [warning] = await scene.events("StackDependentsIgnored");
    expect(warning?.regarding).toMatchObject({ kind: stackKind.kind, name: "base" });
  },
  testTimeoutMs,
);

test(
  "Stacks that depend on each other are destroyed in any order",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    await scene.stack("one", on());
    await scene.stack("two", on("one"));
    await scene.isReady("one");
    await scene.isReady("two");
    await scene.stack("one", on("two"));
    await scene.becomes("one", "in a cycle", (stack) => reasonOf(stack) === "SpecInvalid");
    await scene.delete("one");
    await scene.delete("two");
    await scene.isDeleted("one");
    await scene.isDeleted("two");
    expect(started(scene, "destroy").toSorted()).toEqual(["one", "two"]);
  },
  testTimeoutMs,
);
