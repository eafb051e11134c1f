import { describe, expect, test } from "bun:test";

import type { LabelSelector, WorkspaceClass } from "@pko/api";
import { refKey, type KubeObject, type Store } from "@pko/kube";

import { classOf, matchesLabels, namespaceLimit, type ClassView } from "./workspace-classes.ts";

const storeOf = <T extends KubeObject>(...objects: readonly T[]): Store<T> =>
  ({
    list: () => [...objects],
    get: (key: string) => objects.find(({ metadata }) => refKey({ name: metadata.name ?? "" }) === key),
  }) as unknown as Store<T>;

const aClass = (name: string, namespaceSelector: LabelSelector): WorkspaceClass => ({
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "WorkspaceClass",
  metadata: { name, uid: `uid-of-${name}` },
  spec: { namespaceSelector },
});
const namespace = (labels: Record<string, string>): KubeObject => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name: "team", labels },
});
const teams = { matchLabels: { tier: "teams" } };

describe("a selector matches", () => {
  const labels = { tier: "teams", region: "eu" };
  const exists = (key: string) => ({ matchExpressions: [{ key, operator: "Exists" as const }] });
  const table: [string, LabelSelector, boolean][] = [
    ["all namespaces if it is empty", {}, true],
    ["a label", teams, true],
    ["no other value", { matchLabels: { tier: "other" } }, false],
    ["only if all labels match", { matchLabels: { tier: "teams", region: "us" } }, false],
    ["a value in a list", { matchExpressions: [{ key: "region", operator: "In", values: ["us", "eu"] }] }, true],
    ["no label that is absent, with In", { matchExpressions: [{ key: "x", operator: "In", values: [""] }] }, false],
    [
      "a label that is absent, with NotIn",
      { matchExpressions: [{ key: "x", operator: "NotIn", values: ["a"] }] },
      true,
    ],
    ["no value of NotIn", { matchExpressions: [{ key: "region", operator: "NotIn", values: ["eu"] }] }, false],
    ["a label that exists", exists("tier"), true],
    ["no label that does not exist", exists("x"), false],
    ["a label that must not exist", { matchExpressions: [{ key: "x", operator: "DoesNotExist" }] }, true],
    ["no label that must not exist", { matchExpressions: [{ key: "tier", operator: "DoesNotExist" }] }, false],
    ["labels and expressions together", { ...teams, ...exists("x") }, false],
  ];
  for (const [what, selector, isMatch] of table) {
    test(what, () => expect(matchesLabels(selector, labels)).toBe(isMatch));
  }
});

describe("the class of a namespace", () => {
  const [a, b] = [aClass("a", teams), aClass("b", { matchLabels: { region: "eu" } })];
  const table: [string, WorkspaceClass[], KubeObject[], ClassView["kind"]][] = [
    ["is none if there are no classes, whether or not the namespace is known", [], [], "none"],
    ["is unknown while the labels of the namespace are", [a], [], "unknown"],
    ["is the one that selects it", [a, b], [namespace({ tier: "teams" })], "one"],
    ["is none if none selects it", [a, b], [namespace({})], "none"],
    ["is a conflict if two select it", [a, b], [namespace({ tier: "teams", region: "eu" })], "conflict"],
  ];
  for (const [what, classes, namespaces, kind] of table) {
    test(what, () => {
      const found = classOf({ classes: storeOf(...classes), namespaces: storeOf(...namespaces) }, "team");
      expect(found.kind).toBe(kind);
      if (found.kind === "one") expect(found).toMatchObject({ name: "a", uid: "uid-of-a" });
      if (found.kind === "conflict") expect(found.names).toEqual(["a", "b"]);
    });
  }
});

describe("the limit of concurrent updates of a namespace", () => {
  const applied = (maxConcurrentUpdates?: number): ClassView => ({
    kind: "one",
    name: "teams",
    uid: "uid-of-teams",
    spec: { namespaceSelector: teams, ...(maxConcurrentUpdates !== undefined && { maxConcurrentUpdates }) },
  });
  const table: [string, ClassView, number][] = [
    ["is that of its class", applied(3), 3],
    ["is the operator's if its class has none", applied(), 10],
    ["is the operator's without a class", { kind: "none" }, 10],
    ["is the operator's while classes are in conflict", { kind: "conflict", names: ["a", "b"] }, 10],
  ];
  test.each(table)("%s", (_, view, limit) => {
    expect(namespaceLimit(() => view, 10)("team")).toBe(limit);
  });
});
