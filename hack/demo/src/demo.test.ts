import { describe, expect, test } from "bun:test";

import type { Stack, Update, Workspace } from "@pko/api";
import { formatFeedLine, type RunEvent } from "@pko/records";

import { exampleNames, obstacleOf, readExample, stackNames } from "./example.ts";
import { hashAnnotation, installedOperator } from "./installed-operator.ts";
import { nextSteps } from "./next-steps.ts";
import { foreignObjects } from "./own-objects.ts";
import { isEndOfRun, isSince, outputLines, resourceLine, progressLine } from "./progress-lines.ts";

const stack = (status: Stack["status"]): Stack => ({
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  metadata: { name: "shop", generation: 1 },
  spec: { stack: "dev" },
  ...(status && { status }),
});

const time = "2026-01-01T00:00:00Z";
const condition = (type: string, status: "True" | "False", message: string) =>
  ({ type, status, reason: "Some", message, lastTransitionTime: time, observedGeneration: 1 }) as never;

const update: Update = {
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "Update",
  metadata: { name: "shop-1" },
  spec: { type: "up" },
  status: {
    startTime: time,
    endTime: "2026-01-01T00:00:02Z",
    summary: "3 created, 1 unchanged",
  },
};

const workspace = (message: string): Workspace => ({
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "Workspace",
  metadata: { name: "shop" },
  spec: {},
  status: { conditions: [condition("Ready", "False", message)] },
});

describe("the progress line of a Stack", () => {
  const cases: [string, Parameters<typeof progressLine>[0], string][] = [
    ["that was not reconciled yet", { stack: stack(undefined) }, "waiting for the operator"],
    [
      "that waits",
      { stack: stack({ waiting: { for: "the Stack network", since: time } }) },
      "waiting for the Stack network",
    ],
    [
      "whose pod starts",
      { stack: stack({ waiting: { for: "the workspace", since: time } }), workspace: workspace("pulling the image") },
      "workspace: pulling the image",
    ],
    ["whose update runs", { stack: stack({ currentUpdate: { name: "shop-1" } }), update }, "up is running"],
    [
      "that is ready",
      { stack: stack({ conditions: [condition("Ready", "True", "")] }), update },
      "ready: up succeeded (3 created, 1 unchanged)",
    ],
    [
      "that is stalled",
      { stack: stack({ conditions: [condition("Stalled", "True", "spec.branch: no such branch")] }) },
      "stalled: spec.branch: no such branch",
    ],
  ];
  for (const [what, scene, sentence] of cases) test(what, () => expect(progressLine(scene)).toBe(sentence));
});

describe("lines of the workspace pod's log", () => {
  const urn = "urn:pulumi:dev::demo::b:c:D::a";
  const step = { kind: "resource", phase: "finished", op: "create", urn, resourceType: "b:c:D" } as const;
  const cases: [string, RunEvent, string | undefined][] = [
    ["a new resource", step, "+ a  b:c:D"],
    ["a failed one", { ...step, phase: "failed" }, "✗ a  b:c:D"],
    ["the start of a step", { ...step, phase: "started" }, undefined],
    ["an unchanged one", { ...step, op: "same" }, undefined],
    ["an error of the program", { kind: "diagnostic", severity: "error", message: "boom" }, "boom"],
    ["a warning", { kind: "diagnostic", severity: "warning", message: "deprecated" }, undefined],
    ["the URL of the update", { kind: "permalink", url: "https://x" }, "details: https://x"],
  ];
  const line = (event: RunEvent, time = "2026-01-01T00:00:00Z") => formatFeedLine("run", { seq: 1, time, event });
  for (const [what, event, text] of cases) test(what, () => expect(resourceLine(line(event))).toBe(text));

  test("a line that is not an event", () => {
    expect(resourceLine("plain text")).toBeUndefined();
    expect(resourceLine('{"level":"info","msg":"agent ready"}')).toBeUndefined();
  });

  test("a line of an earlier run in the same second", () => {
    const since = new Date("2026-01-01T00:00:00.500Z");
    expect(isSince(line(step, "2026-01-01T00:00:00.499Z"), since)).toBe(false);
    expect(isSince(line(step, "2026-01-01T00:00:00.500Z"), since)).toBe(true);
    expect(isSince("plain text", since)).toBe(false);
  });

  test("the end of a run", () => {
    const message = (ts: string, msg: string): string => JSON.stringify({ level: "info", ts, msg, run: "1" });
    const since = new Date("2026-01-01T00:00:00.500Z");
    expect(isEndOfRun(message("2026-01-01T00:00:00.500Z", "run finished"))).toBe(true);
    expect(isEndOfRun(message("2026-01-01T00:00:00.500Z", "run started"))).toBe(false);
    expect(isSince(message("2026-01-01T00:00:00.499Z", "run finished"), since)).toBe(false);
    expect(isSince(message("2026-01-01T00:00:00.500Z", "run finished"), since)).toBe(true);
  });
});

test("outputs are aligned and sorted by name", () => {
  expect(outputLines({ port: 80, address: "https://x" })).toEqual(["address  https://x", "port     80"]);
});

describe("examples", () => {
  test("each has a Stack, and those with a file backend run on the local cluster", () => {
    expect(exampleNames()).toContain("program");
    expect(obstacleOf(readExample("program"), true)).toBeUndefined();
    for (const name of ["custom-image", "git", "oidc"]) {
      expect(obstacleOf(readExample(name), true)).toContain(`the example ${name} needs more than a cluster`);
      expect(obstacleOf(readExample(name), false)).toBeUndefined();
    }
  });

  test("whose Stacks do not become ready by themselves, or may not be deleted, are refused on every cluster", () => {
    for (const name of ["approvals", "protection", "suspend", "update-windows"]) {
      const obstacle = obstacleOf(readExample(name), false);
      expect(obstacle).toContain(`the example ${name} waits for a person`);
      expect(obstacle?.replace(/.*choose from/s, "").split(/,? /)).not.toContain(name);
    }
  });

  test("an unknown name lists the available examples", () => {
    expect(() => readExample("../secrets")).toThrow("there is no example ../secrets: choose from");
  });

  test("are deployed to the namespace of the context, to which kubectl applies them", () => {
    expect(stackNames(readExample("program"), "team-a")).toEqual([{ name: "shop", namespace: "team-a" }]);
  });
});

describe("next steps", () => {
  const steps = (isOwnCluster: boolean): string =>
    nextSteps({ name: "shop", namespace: "default", isOwnCluster }).join("\n");

  test("include the console, with its address", () => {
    expect(steps(true)).toContain("kubectl pulumi ui --port=8001");
    expect(steps(true)).toContain("http://127.0.0.1:8001");
  });

  test("stop only a cluster that the demo has started", () => {
    expect(steps(true)).toContain("make cluster-down");
    expect(steps(false)).not.toContain("make cluster-down");
  });
});

test("objects that no demo has created are reported, whatever other label they have", () => {
  const rows = [
    "ServiceAccount   program-example   default   pulumi-operator-demo",
    "Secret           shop-admin        default   <none>",
    "",
    "Stack   shop   default   argocd",
  ];
  expect(foreignObjects(rows.join("\n")).map((problem) => problem.replace(/,.*/s, ""))).toEqual([
    "Secret shop-admin exists in namespace default",
    "Stack shop exists in namespace default",
  ]);
});

describe("an operator that is already on the cluster", () => {
  const repository = "docker.io/pulumi/pulumi-kubernetes-operator";
  const deployment = (name: string, tag: string, variable: string) => {
    const manager = { name: "manager", image: `${repository}:${tag}`, env: [{ name: variable, value: "" }] };
    return { metadata: { name }, spec: { selector: {}, template: { spec: { containers: [manager] } } } };
  };
  const fromManifest = "controller-manager";
  const fromChart = "pulumi-kubernetes-operator-controller-manager";
  const ours = "OPERATOR_NAMESPACE";

  test("is never replaced if it is the Go operator, from its manifest or its chart", () => {
    for (const name of [fromManifest, fromChart]) {
      const found = installedOperator([deployment(name, "v2.9.0", "POD_NAMESPACE")]);
      expect(found).toEqual({ kind: "foreign", problem: expect.stringContaining(`Deployment ${name} `) as string });
    }
  });

  test("is used if the chart has installed it, or if it is a release", () => {
    expect(installedOperator([deployment(fromChart, "0123456789ab", ours)]).kind).toBe("used");
    expect(installedOperator([deployment(fromManifest, "v3.0.0", ours)]).kind).toBe("used");
  });

  test("is replaced if a demo has installed it, even one that was interrupted", () => {
    expect(installedOperator([deployment(fromManifest, "0123456789ab", ours)]).kind).toBe("none");
    const released = deployment(fromManifest, "v3.0.0", ours);
    const annotated = { ...released.metadata, annotations: { [hashAnnotation]: "0" } };
    expect(installedOperator([{ ...released, metadata: annotated }]).kind).toBe("none");
    expect(installedOperator([deployment("other", "v2.9.0", "PORT")]).kind).toBe("none");
  });
});
