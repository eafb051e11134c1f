import { describe, expect, test } from "bun:test";

import { normalizeWorkspace, workspaceKind, type Workspace } from "@pko/api";
import type { ContainerState, ContainerStatus, Pod, PodSpec } from "kubernetes-types/core/v1";

import type { AppliedClass } from "../../shared/workspace-classes.ts";
import { settings } from "../testing/views.ts";
import { buildInputs, draftPod } from "./build-inputs.ts";
import { imageWithoutShell } from "./helper-container.ts";
import { podFacts } from "./pod-facts.ts";

const plain = { local: { dir: "/app" }, stacks: [{ name: "dev" }] };

type Known = Omit<Parameters<typeof buildInputs>[1], "readings"> & { readonly applied?: AppliedClass };

function build(spec: object, { applied, ...known }: Known = {}) {
  const metadata = { name: "web", namespace: "team", uid: "w1" };
  const workspace: Workspace = { ...workspaceKind, metadata, spec: { ...plain, ...spec } };
  const normal = normalizeWorkspace(workspace);
  if (!normal.ok) throw new Error(JSON.stringify(normal.problems));
  const draft = draftPod({ workspace, normal: normal.value, settings, ...(applied && { applied }) });
  const { pod } = buildInputs(draft, { readings: [], ...known });
  if (!pod.ok) throw new Error(pod.problems.join());
  return pod;
}

const template = (spec: PodSpec | object) => ({ podTemplate: { spec } });
const names = (containers: PodSpec["containers"] = []): string[] => containers.map(({ name }) => name);

describe("bootstrap is a helper container", () => {
  const { metadata, spec } = build({}).template;

  test("that starts first, and kubectl selects the other one", () => {
    expect([names(spec?.initContainers), names(spec?.containers)]).toEqual([[], ["bootstrap", "pulumi"]]);
    expect(metadata?.annotations).toMatchObject({ "kubectl.kubernetes.io/default-container": "pulumi" });
  });

  test("that requests nothing and is as confined as the other one", () => {
    const [helper, pulumi] = spec?.containers ?? [];
    expect(helper?.resources).toEqual({ requests: { cpu: "0", memory: "0" } });
    expect(helper?.securityContext).toEqual(pulumi?.securityContext ?? {});
  });

  test("also beside the containers of a template, whose annotation is kept", () => {
    const annotations = { "kubectl.kubernetes.io/default-container": "proxy" };
    const podTemplate = { metadata: { annotations }, spec: { containers: [{ name: "proxy", image: "p" }] } };
    const { template: pod } = build({ podTemplate });
    expect(names(pod.spec?.containers)).toEqual(["bootstrap", "proxy", "pulumi"]);
    expect(pod.metadata?.annotations).toMatchObject(annotations);
  });

  test("which installs the agent unless it is installed, and the other one waits for it, then becomes it", () => {
    const [helper, pulumi] = spec?.containers ?? [];
    expect(helper?.command?.slice(3)).toEqual(["/share/agent-bin", "/share/workspace"]);
    expect(pulumi?.command?.slice(3, 5)).toEqual(["/share/agent-bin", "--share=/share"]);
  });
});

const recordedIn = ({ objects }: ReturnType<typeof build>): string | undefined =>
  objects.statefulSet.metadata?.annotations?.["auto.pulumi.com/image-without-shell"];

describe("the shell that waits for the agent", () => {
  const [sh = "", ...args] = build({}).template.spec?.containers[1]?.command?.slice(0, 3) ?? [];
  const run = (agent: string, env: Record<string, string>) => {
    const { exitCode, stdout, stderr } = Bun.spawnSync([sh, ...args, agent, "an argument"], { env, timeout: 10_000 });
    return { exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
  };

  test("becomes the agent", () => {
    expect(run("/bin/echo", { PATH: "/bin:/usr/bin" })).toMatchObject({ exitCode: 0, stdout: "an argument\n" });
  });

  test("ends without a log if the image has no sleep, instead of keeping a CPU busy", () => {
    expect(run("/missing", { PATH: "/nowhere" })).toEqual({ exitCode: 127, stdout: "", stderr: "" });
  });
});

describe("bootstrap is an init container", () => {
  const initContainer = { name: "mine", image: "i" };
  const cases: Readonly<Record<string, object>> = {
    "if a template has init containers, which run after it": template({ initContainers: [initContainer] }),
    "if a template changes it": template({ initContainers: [{ name: "bootstrap", resources: {} }] }),
    "if a template sets another command": template({ containers: [{ name: "pulumi", command: ["tini", "agent"] }] }),
    "if a template has a liveness probe, which would fail before the agent exists": template({
      containers: [{ name: "pulumi", livenessProbe: { exec: { command: ["/share/agent-bin", "version"] } } }],
    }),
    "if a template has a startup probe": template({
      containers: [{ name: "pulumi", startupProbe: { tcpSocket: { port: 50051 } } }],
    }),
    "if a template has a hook, which would run before the agent exists": template({
      containers: [
        { name: "pulumi", lifecycle: { postStart: { exec: { command: ["/share/agent-bin", "version"] } } } },
      ],
    }),
    "if the volume may have the agent of an earlier pod": template({
      volumes: [{ name: "share", persistentVolumeClaim: { claimName: "share" } }],
    }),
  };
  for (const [why, spec] of Object.entries(cases)) {
    test(why, () => {
      const pod = build(spec);
      expect(names(pod.template.spec?.initContainers)).toContain("bootstrap");
      expect(names(pod.template.spec?.containers)).not.toContain("bootstrap");
      expect(pod.withInitContainer).toBeUndefined();
    });
  }

  test("if the image has no shell, which is recorded", () => {
    const image = "distroless:1";
    for (const withoutShell of [{ shown: image }, { recorded: image }]) {
      const pod = build({ image }, { withoutShell });
      expect(names(pod.template.spec?.initContainers)).toEqual(["bootstrap"]);
      expect(recordedIn(pod)).toBe(image);
      const other = build({ image: "debian:1" }, { withoutShell });
      expect(names(other.template.spec?.initContainers)).toEqual([]);
      expect(recordedIn(other)).toBeUndefined();
    }
  });

  test("if the image fails elsewhere, which is not recorded, so that it heals", () => {
    const pod = build({}, { failsElsewhere: () => true });
    expect(names(pod.template.spec?.initContainers)).toEqual(["bootstrap"]);
    expect(recordedIn(pod)).toBeUndefined();
  });

  test("not if the pod works: it is not replaced because the image fails elsewhere", () => {
    const { objects, template: working } = build({});
    const image = working.spec?.containers.find(({ name }) => name === "pulumi")?.image;
    const known = { builtHash: objects.hash, failsElsewhere: () => true };
    expect(build({}, known).objects.hash).toBe(objects.hash);
    expect(build({}, { ...known, withoutShell: { shown: image } }).objects.hash).not.toBe(objects.hash);
  });

  test("if a class limits the pod, because a helper would take a part of the limit as long as the pod exists", () => {
    const limits = { resources: { memory: "4Gi" } };
    const { spec } = build(
      {},
      { applied: { name: "teams", uid: "c1", spec: { namespaceSelector: {}, limits } } },
    ).template;
    expect([names(spec?.initContainers), names(spec?.containers)]).toEqual([["bootstrap"], ["pulumi"]]);
  });

  test("if it is one already, and nothing else has changed", () => {
    const builtHash = build({}).withInitContainer?.objects.hash ?? "";
    expect(build({}, { builtHash }).objects.hash).toBe(builtHash);
    expect(names(build({ image: "other:1" }, { builtHash }).template.spec?.initContainers)).toEqual([]);
  });
});

describe("an image has no shell", () => {
  const missing = 'exec: "/bin/sh": stat /bin/sh: no such file or directory: unknown';
  const pod = (state: ContainerState, part: { lastState?: ContainerState; command?: string[] } = {}): Pod => ({
    spec: { containers: [{ name: "pulumi", image: "mine:1", command: part.command ?? ["/bin/sh", "-c"] }] },
    status: {
      containerStatuses: [
        { name: "pulumi", image: "mine:1", imageID: "", ready: false, restartCount: 0, state, ...part },
      ],
    },
  });
  const ended = (reason: string, message: string): ContainerState => ({
    terminated: { exitCode: 128, reason, message },
  });
  const backoff = { waiting: { reason: "CrashLoopBackOff", message: "back-off 10s" } };
  const cases: Readonly<Record<string, readonly [Pod, string | undefined]>> = {
    "if the container could not be started with it": [pod(ended("StartError", missing)), "mine:1"],
    "if it could not be started at an earlier attempt": [
      pod(backoff, { lastState: ended("StartError", missing) }),
      "mine:1",
    ],
    "if the runtime rejects it": [pod({ waiting: { reason: "RunContainerError", message: missing } }), "mine:1"],
    "if its shell lacks a program to wait with": [pod({ terminated: { exitCode: 127, reason: "Error" } }), "mine:1"],
    "not if something else is missing": [pod(ended("StartError", 'chdir "/x": no such file or directory')), undefined],
    "not if a command in the container failed": [pod(ended("Error", "/bin/sh: foo: not found")), undefined],
    "not if it does not need one": [pod(ended("StartError", missing), { command: ["/share/agent-bin"] }), undefined],
    "not if it runs": [pod({ running: {} }), undefined],
  };
  for (const [when, [each, image]] of Object.entries(cases)) {
    test(when, () => expect(imageWithoutShell(each)).toBe(image));
  }
});

describe("a container that waits for its helper", () => {
  interface Known {
    hasResponded?: true;
    hasRun?: true;
  }
  const facts = (helper: ContainerState, ready: boolean, known: Known = {}) => {
    const status = (name: string, part: Partial<ContainerStatus>): ContainerStatus => ({
      name,
      image: "i",
      imageID: "",
      ready: false,
      restartCount: 0,
      ...part,
    });
    const containerStatuses = [
      status("bootstrap", { state: helper }),
      status("pulumi", { state: { running: {} }, ready }),
    ];
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {},
      status: { phase: "Running", podIP: "10.0.0.1", containerStatuses },
    };
    const { hasResponded = false, hasRun = false } = known;
    return podFacts(pod, { namespace: "team", name: "web" }, { hasResponded: () => hasResponded, hasRun });
  };
  const isUp = (...parts: Parameters<typeof facts>): boolean => facts(...parts).isUp;
  const failed = { waiting: { reason: "CrashLoopBackOff" } };

  test("is up if the helper runs", () => expect(isUp({ running: {} }, false)).toBe(true));
  test("is not up if the helper fails", () => expect(isUp(failed, false)).toBe(false));
  test("stays up if the helper fails later", () => expect(isUp(failed, true)).toBe(true));
  test("stays up if both the helper and the probe fail after the agent responded", () =>
    expect(isUp(failed, false, { hasResponded: true })).toBe(true));
  test("stays up if both the helper and the probe fail while an Update runs", () =>
    expect(isUp(failed, false, { hasRun: true })).toBe(true));

  test("may lack the agent until that responds", () => {
    expect(facts({ running: {} }, false).mayLackAgent).toBe(true);
    expect(facts({ running: {} }, true).mayLackAgent).toBeUndefined();
    expect(facts({ running: {} }, false, { hasResponded: true }).mayLackAgent).toBeUndefined();
  });
});
