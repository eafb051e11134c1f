import { describe, expect, test } from "bun:test";

import { reconcileRequestAnnotation, type Stack, type Update, type Workspace } from "@pko/api";
import { ApiError, type Client } from "@pko/kube";
import { formatFeedLine, type RunEvent } from "@pko/records";

import { exampleNames, needsDefaultStorage, obstacleOf, readExample, stackNames } from "./example.ts";
import { hashAnnotation, operatorForDemo, unfinishedInstallation } from "./installed-operator.ts";
import { nextSteps } from "./next-steps.ts";
import { foreignObjects, restoreStack } from "./own-objects.ts";
import { isEndOfRun, isReady, isSince, outputLines, resourceLine, progressLine } from "./progress-lines.ts";
import { storageProblem } from "./storage.ts";

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

test("a Stack is not ready before the operator has observed the request for an update", () => {
  const ready = { conditions: [condition("Ready", "True", "")], observedReconcileRequest: "1" };
  const requested = (value: string): Stack => ({
    ...stack(ready),
    metadata: { name: "shop", generation: 1, annotations: { [reconcileRequestAnnotation]: value } },
  });
  expect(isReady(requested("1"))).toBe(true);
  expect(isReady(requested("2"))).toBe(false);
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

describe("the default StorageClass", () => {
  const storageClass = (name: string, annotations?: Record<string, string>) => ({
    metadata: { name, ...(annotations && { annotations }) },
  });
  const problem = (...classes: readonly ReturnType<typeof storageClass>[]) =>
    storageProblem(classes, { name: "program" });

  test("is needed by examples that claim a volume", () => {
    expect(needsDefaultStorage(readExample("program"))).toBe(true);
    expect(needsDefaultStorage(readExample("oidc"))).toBe(false);
  });

  test("is found by its annotation", () => {
    for (const name of [
      "storageclass.kubernetes.io/is-default-class",
      "storageclass.beta.kubernetes.io/is-default-class",
    ])
      expect(problem(storageClass("slow"), storageClass("standard", { [name]: "true" }))).toBeUndefined();
  });

  test("is reported if it is missing, with the classes that could be the default", () => {
    expect(problem()).toContain("the cluster has no default StorageClass: install a provisioner");
    const off = { "storageclass.kubernetes.io/is-default-class": "false" };
    expect(problem(storageClass("slow", off), storageClass("fast"))).toContain("make one of its classes (slow, fast)");
  });
});

describe("next steps", () => {
  const local = { stacks: ["shop"], namespace: "default", folder: "examples/program", variables: "" };
  const manifest = "deploy/quickstart/install.yaml";
  const own = { ...local, variables: "CONTEXT=kind-b", manifest };
  const steps = (demo: Parameters<typeof nextSteps>[0]): string => nextSteps(demo).join("\n");

  test("include the console, with its address", () => {
    expect(steps(local)).toContain("kubectl pulumi ui --port=8001");
    expect(steps(local)).toContain("http://127.0.0.1:8001");
  });

  test("stop only a cluster that the demo has started, which needs no other cleanup", () => {
    expect(steps({ ...local, manifest })).toContain("make cluster-down");
    expect(steps({ ...local, manifest })).not.toContain("kubectl delete -f");
    expect(steps(own)).not.toContain("make cluster-down");
  });

  test("deploy another example on the same cluster", () => {
    expect(steps(local)).toMatch(/^make demo EXAMPLE=structured-config +#/m);
    expect(steps(own)).toMatch(/^make demo EXAMPLE=structured-config CONTEXT=kind-b +#/m);
  });

  test("remove from the user's own cluster what the demo has created, in this order", () => {
    const deletions = (demo: Parameters<typeof nextSteps>[0]): string[] =>
      nextSteps(demo)
        .filter((command) => command.startsWith("kubectl delete"))
        .map((command) => command.replace(/ +#.*/, ""));
    const example = [
      "kubectl delete stack network shop --namespace team-a",
      "kubectl delete -f examples/program --namespace team-a --ignore-not-found",
    ];
    const demo = { ...own, stacks: ["network", "shop"], namespace: "team-a" };
    expect(deletions(demo)).toEqual([...example, `kubectl delete -f ${manifest}`]);
    expect(deletions({ ...demo, manifest: undefined })).toEqual(example);
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

describe("before a Stack of an interrupted demo is deleted", () => {
  const name = { name: "shop", namespace: "default" };
  const shop = stack(undefined);

  test("its spec becomes that of the manifest", async () => {
    const calls: unknown[] = [];
    const patch: Client["patch"] = async (_, ...call) => await Promise.resolve(calls.push(call) as never);
    await restoreStack({ patch }, name, shop);
    const body = [{ op: "replace", path: "/spec", value: { stack: "dev" } }];
    expect(calls).toEqual([[name, { patch: { type: "json", body } }]]);
  });

  test("it may be deleted already", async () => {
    const notFound = new ApiError("patch", { status: 404, reason: "NotFound", message: "" });
    await restoreStack({ patch: async () => await Promise.reject(notFound) }, name, shop);
  });
});

describe("an operator that is already on the cluster", () => {
  const repository = "docker.io/pulumi/pulumi-kubernetes-operator";
  const home = "pulumi-kubernetes-operator";
  const fromManifest = "controller-manager";
  const fromChart = "pulumi-kubernetes-operator-controller-manager";
  const ours = [{ name: "OPERATOR_AGENT_IMAGE", value: "any" }];
  const serving = (namespaces: string) => [...ours, { name: "OPERATOR_WATCH_NAMESPACES", value: namespaces }];

  interface Fields {
    readonly name?: string;
    readonly namespace?: string;
    readonly image?: string;
    readonly env?: readonly { readonly name: string; readonly value: string }[];
    readonly annotations?: Readonly<Record<string, string>>;
    readonly replicas?: number;
  }
  const deployment = ({ name = fromManifest, namespace = home, annotations = {}, ...fields }: Fields) => {
    const { image = `${repository}:v3.0.0`, env = ours, replicas = 1 } = fields;
    const containers = [{ name: "manager", image, env }];
    return { metadata: { name, namespace, annotations }, spec: { replicas, template: { spec: { containers } } } };
  };
  const decide = (...found: readonly Fields[]) => operatorForDemo(found.map(deployment), "default");
  const goOperator = { image: `${repository}:v2.9.0`, env: [{ name: "POD_NAMESPACE", value: "any" }] };

  test.each<[string, Fields]>([
    ["from its manifest", {}],
    ["from its chart", { name: fromChart }],
    ["in another namespace", { name: `pko-${fromChart}`, namespace: "pulumi-system" }],
    ["that is scaled to zero", { replicas: 0 }],
    ["that someone annotated like a demo", { annotations: { [hashAnnotation]: "0" } }],
  ])("stops the demo if it is the Go operator %s", (_, fields) => {
    const { name = fromManifest, namespace = home } = fields;
    const where = `the Go operator is installed on this cluster (Deployment ${name} in namespace ${namespace})`;
    const stopped = { kind: "unusable", problem: expect.stringContaining(where) as string };
    expect(decide({ ...goOperator, ...fields })).toEqual(stopped as never);
    expect(decide({ name: fromChart }, { ...goOperator, ...fields })).toEqual(stopped as never);
  });

  test.each<[string, Fields]>([
    ["was installed with the chart", { name: fromChart, image: `${repository}:0123456789ab` }],
    ["was installed with the chart in another namespace", { name: `pko-${fromChart}`, namespace: "pulumi-system" }],
    ["is a release", {}],
    ["has an image with another name", { image: "registry.example.com/operator:dev" }],
    ["has an image with another name and a hash", { image: "registry.example.com/operator:0123456789ab" }],
    ["has an image with a digest", { image: `${repository}@sha256:${"0".repeat(64)}` }],
    ["has a tag of the user", { image: `${repository}:v3.0.0-corp1` }],
    ["has a hash as its tag, in another namespace", { namespace: "team-a", image: `${repository}:0123456789ab` }],
    ["serves the namespace of the example", { env: serving("team-a,default") }],
  ])("is used as it is if it %s", (_, fields) => {
    const { name = fromManifest, namespace = home } = fields;
    const explanation = `using the operator that is installed: Deployment ${name} in ${namespace}`;
    expect(decide(fields)).toEqual({ kind: "used", explanation });
  });

  test("is used if it is one of several, and serves the namespace of the example", () => {
    expect(decide({ namespace: "team-a", env: serving("team-a") }, { name: fromChart }).kind).toBe("used");
  });

  test.each<[string, Fields, string]>([
    [
      "serves other namespaces only",
      { namespace: "team-a", env: serving("team-a,team-b") },
      "(Deployment controller-manager in namespace team-a), but it does not serve namespace default: select one that it serves in your kubeconfig (team-a, team-b)",
    ],
    [
      "is scaled to zero",
      { replicas: 0 },
      "but it is scaled to zero: kubectl scale deployment controller-manager --namespace pulumi-kubernetes-operator",
    ],
  ])("stops the demo if it %s", (_, fields, problem) => {
    const stopped = { kind: "unusable", problem: expect.stringContaining(problem) as string };
    expect(decide(fields)).toEqual(stopped as never);
  });

  test.each<[string, readonly Fields[]]>([
    ["has installed it", [{ annotations: { [hashAnnotation]: "0123456789abcdef" } }]],
    ["has installed a release", [{ image: `${repository}:v3.0.0`, annotations: { [hashAnnotation]: "0" } }]],
    ["was interrupted", [{ image: "mine:dev", annotations: { [hashAnnotation]: unfinishedInstallation } }]],
    ["was interrupted before its annotation", [{ image: `${repository}:0123456789ab` }]],
    [
      "has pushed its image to a registry",
      [{ image: "registry.example.com/team/pulumi-kubernetes-operator:0123456789ab" }],
    ],
    ["finds other programs only", [{ name: "other", image: "example.com/app", env: [] }]],
  ])("is installed or replaced if a demo %s", (_, found) => {
    expect(decide(...found)).toEqual({ kind: "to install" });
  });
});
