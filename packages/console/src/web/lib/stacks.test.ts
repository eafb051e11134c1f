import { stackConditions, type Stack, type StackSpec } from "@pko/api/browser";
import { describe, expect, test } from "bun:test";

import { connected, dependencyGraph, dependentsOf } from "./dependencies.ts";
import { aboutStack, type KubernetesEvent } from "./events.ts";
import { explain, type NextStep } from "./explain.ts";
import { durationBetween } from "./gantt.ts";
import { layoutGraph, nodeSize } from "./graph-layout.ts";
import { inputsOf } from "./inputs.ts";
import { operatorHealth } from "./operator-health.ts";
import { runLog } from "./pod-log.ts";
import { changeText, runsOf } from "./runs.ts";
import { aStack, at, condition, failing, now, ready, resourceEvent } from "./testing.ts";

describe("why a Stack is in its state", () => {
  const reasons = Object.entries({ ...stackConditions.Reconciling, ...stackConditions.Stalled });

  test.each(reasons)("%s has a meaning", (reason, meaning) => {
    const type = reason in stackConditions.Stalled ? "Stalled" : "Reconciling";
    const status = { observedGeneration: 1, conditions: [condition(type, "True", reason)] };
    expect(explain(aStack("a/b", status))).toMatchObject({ reason, meaning, message: `about ${reason}` });
  });

  test("a status about an older spec explains nothing", () => {
    const stack = aStack("a/b", { ...ready, observedGeneration: 0 });
    expect(explain(stack).meaning).toBe("The operator has not processed this Stack yet.");
  });

  const next = { what: "retry", time: at(60) };
  const waiting = { for: "an Approval", since: at(-60) };
  const suspended = "Nothing starts until the Stack is resumed.";
  const idle = "Nothing starts by itself until something changes.";
  const cases: readonly (readonly [sentence: string, stack: Stack, next: NextStep])[] = [
    [
      "a running update",
      aStack("a/b", { ...failing, currentUpdate: { name: "u" }, next }),
      { kind: "running", update: "u" },
    ],
    ["a scheduled action", aStack("a/b", { ...failing, next }), { kind: "scheduled", ...next }],
    ["a wait with an end", aStack("a/b", { ...failing, next, waiting }), { kind: "waiting", ...waiting, next }],
    ["a wait", aStack("a/b", { ...failing, waiting }), { kind: "waiting", ...waiting }],
    ["a suspended Stack", aStack("a/b", failing, { suspend: true }), { kind: "nothing", text: suspended }],
    ["a failure", aStack("a/b", failing), { kind: "nothing", text: idle }],
  ];

  test.each(cases)("what happens next: %s", (_, stack, expected) => expect(explain(stack).next).toEqual(expected));
});

describe("dependencies", () => {
  const needs = (...names: string[]): Partial<StackSpec> => ({ prerequisites: names.map((name) => ({ name })) });
  const graph = dependencyGraph([
    aStack("a/network", ready),
    aStack("a/database", ready, {
      prerequisites: [{ type: "Stack", requirement: "network" }],
      envRefs: { ID: { type: "StackOutput", stack: "network", output: "id" } },
    }),
    aStack("a/web", ready, needs("database", "gone")),
    aStack("b/network", ready),
  ]);

  test("are prerequisites in both spellings, and outputs", () => {
    expect(graph.edges).toEqual([
      { from: "a/database", to: "a/network", outputs: ["id"] },
      { from: "a/web", to: "a/database", outputs: [] },
      { from: "a/web", to: "a/gone", outputs: [] },
    ]);
    expect(graph.nodes.find(({ id }) => id === "a/gone")?.state).toBe("Missing");
  });

  test("those that run afterwards are found through others", () => {
    expect(dependentsOf("a/network", graph)).toEqual(["a/database", "a/web"]);
    expect(dependentsOf("a/web", graph)).toEqual([]);
  });

  test("a cycle ends", () => {
    const cycle = dependencyGraph([aStack("a/x", ready, needs("y")), aStack("a/y", ready, needs("x"))]);
    expect(dependentsOf("a/x", cycle)).toEqual(["a/y"]);
    expect(layoutGraph(cycle).nodes).toHaveLength(2);
  });

  test("single Stacks are not drawn", () => {
    expect(connected(graph).nodes.map(({ id }) => id)).toEqual(["a/database", "a/gone", "a/network", "a/web"]);
  });

  test("a Stack is drawn to the right of all that it needs, and boxes do not overlap", () => {
    const { nodes } = layoutGraph(connected(graph));
    const x = new Map(nodes.map(({ node, x }) => [node.id, x]));
    for (const { from, to } of graph.edges) expect(x.get(from) ?? 0).toBeGreaterThan(x.get(to) ?? 0);
    for (const a of nodes) {
      for (const b of nodes) {
        if (a === b || a.x !== b.x) continue;
        expect(Math.abs(a.y - b.y)).toBeGreaterThanOrEqual(nodeSize.height);
      }
    }
  });
});

describe("inputs", () => {
  const spec: Partial<StackSpec> = {
    config: { region: "eu", nested: { a: 1 } },
    configRef: { size: { name: "settings", key: "size" } },
    secretsRef: {
      password: { type: "Secret", secret: { name: "db", key: "password" } },
      plain: { type: "Literal", literal: { value: "canary" } },
    },
    secrets: { old: "canary" },
    envRefs: {
      ID: { type: "StackOutput", stack: "network", output: "id" },
      MODE: { type: "Literal", literal: { value: "fast" } },
    },
    accessTokenSecret: "token",
  };
  const { rows } = inputsOf(aStack("a/b", ready, spec));
  const row = (name: string) => rows.find((each) => each.name === name);

  test("show where they come from", () => {
    expect(row("region")).toMatchObject({ origin: "spec.config", value: "eu" });
    expect(row("nested")?.value).toBe('{"a":1}');
    expect(row("size")?.origin).toBe("ConfigMap settings, key size");
    expect(row("password")?.origin).toBe("Secret db, key password");
    expect(row("ID")).toMatchObject({ origin: "output id of Stack network", stack: "network" });
    expect(row("MODE")?.value).toBe("fast");
    expect(row("PULUMI_ACCESS_TOKEN")?.origin).toBe("Secret token, key accessToken");
  });

  test("name the parts of a repository", () => {
    const repository = { projectRepo: "https://github.com/acme/web", branch: "main", repoDir: "infra" };
    const { source } = inputsOf(aStack("a/b", ready, repository));
    expect(source.map(({ label, value }) => `${label} ${value}`)).toEqual([
      "Repository https://github.com/acme/web",
      "Branch main",
      "Directory infra",
      "Pulumi stack dev",
    ]);
  });

  test("never show a secret", () => expect(JSON.stringify(rows)).not.toContain("canary"));
});

describe("runs", () => {
  const record = { updateUid: "u", pulumiStack: "dev", type: "up", startTime: at(-60), endTime: at(-50) } as const;
  const update = (name: string, startTime?: string) => ({
    apiVersion: "",
    kind: "",
    metadata: { name, namespace: "a" },
    status: startTime === undefined ? {} : { startTime },
  });

  test.each([
    ["up", "2 created, 1 unchanged, 1 read"],
    ["preview", "2 to create, 1 unchanged, 1 to read"],
  ] as const)("of type %s count changes: %s", (type, text) => {
    expect(changeText({ type, changes: { create: 2, same: 1, read: 1, delete: 0 } })).toBe(text);
  });

  test.each([
    [undefined, undefined, ""],
    [at(-60), undefined, ""],
    [at(-65), at(0), "1 min 5 s"],
  ])("from %p to %p take %p", (start, end, text) => expect(durationBetween(start, end)).toBe(text));

  test("come from Updates and records, the newest first, each once", () => {
    const records = ["old", "both"].map((name) => ({
      apiVersion: "",
      kind: "",
      metadata: { name, namespace: "a" },
      record: {
        ...record,
        updateName: name,
        result: "succeeded",
        revision: "abc",
        startTime: at(name === "old" ? -900 : -60),
      } as const,
    }));
    const rows = runsOf([update("both", at(-60)), update("new", at(-1)), update("next")], records);
    expect(rows.map(({ name, hasRecord, result }) => [name, hasRecord, result])).toEqual([
      ["next", false, "waiting"],
      ["new", false, "running"],
      ["both", true, "running"],
      ["old", true, "succeeded"],
    ]);
    expect(rows[2]?.revision).toBe("abc");
  });

  test("the log of a pod has several: only lines of the one in question are shown", () => {
    const feed = (run: string, seq: number): string =>
      JSON.stringify({ feed: 1, run, seq, time: at(0), event: resourceEvent("a", "started") });
    const message = (run: string, text: string): string => JSON.stringify({ level: "info", msg: text, run });
    const { events, lines } = runLog(
      [
        "installing",
        message("one", "run started"),
        "first",
        feed("one", 1),
        message("one", "run finished"),
        message("two", "run started"),
        "\u001B[1msecond\u001B[0m",
        feed("two", 1),
        "third",
        feed("two", 2),
        message("two", "run finished"),
        "idle",
      ],
      "two",
    );
    expect(lines).toEqual(["second", "third"]);
    expect(events.map(({ seq }) => seq)).toEqual([1, 2]);
  });
});

test("events are those of the Stack, its workspace, pod and Updates, the newest first", () => {
  const event = (kind: string, name: string, seconds: number): KubernetesEvent => ({
    metadata: { name: `${kind}-${name}` },
    involvedObject: { kind, name },
    lastTimestamp: at(seconds),
  });
  const events = [
    event("Stack", "web", -3),
    event("Stack", "other", -1),
    event("Pod", "web-workspace-0", -2),
    event("Update", "web-1", -1),
    event("Update", "other-1", -1),
    event("Workspace", "web", -4),
  ];
  const rows = aboutStack(events, { stack: "web", updates: new Set(["web-1"]) });
  expect(rows.map(({ object }) => object)).toEqual([
    "Update web-1",
    "Pod web-workspace-0",
    "Stack web",
    "Workspace web",
  ]);
});

describe("the operator", () => {
  const lease = (renewedSecondsAgo: number, holderIdentity = "operator-0", annotations = {}) => ({
    metadata: { name: "operator.pulumi.com", namespace: "pulumi", annotations },
    spec: { holderIdentity, leaseDurationSeconds: 15, renewTime: at(-renewedSecondsAgo) },
  });

  test.each([
    ["renews its Lease", lease(2), true],
    ["has stopped", lease(3600), false],
    ["has no leader", lease(2, ""), false],
  ])("%s", (_, given, isLeading) => expect(operatorHealth(given, now).isLeading).toBe(isLeading));

  test("is suspended by an annotation", () => {
    expect(operatorHealth(lease(2, "a", { "pulumi.com/suspend": "true" }), now).isSuspended).toBe(true);
    expect(operatorHealth(lease(2), now).isSuspended).toBe(false);
  });
});
