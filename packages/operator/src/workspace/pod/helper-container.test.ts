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

describe("bootstrap is an init container", () => {
  const initContainer = { name: "mine", image: "i" };
  const cases: Readonly<Record<string, object>> = {
    "if a template has init containers, which run after it": template({ initContainers: [initContainer] }),
    "if a template changes it": template({ initContainers: [{ name: "bootstrap", resources: {} }] }),
    "if a template sets another command": template({ containers: [{ name: "pulumi", command: ["tini", "agent"] }] }),
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
    const pod = build({ image: "distroless:1" }, { hasNoShell: (image) => image === "distroless:1" });
    expect(names(pod.template.spec?.initContainers)).toEqual(["bootstrap"]);
    expect(pod.objects.statefulSet.metadata?.annotations).toMatchObject({
      "auto.pulumi.com/image-without-shell": "distroless:1",
    });
    expect(names(build({ image: "debian:1" }, { hasNoShell: () => false }).template.spec?.initContainers)).toEqual([]);
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
  const isUp = (helper: ContainerState, ready: boolean): boolean => {
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
    return podFacts(pod, { namespace: "team", name: "web" }, { hasResponded: () => false }).isUp;
  };
  const failed = { waiting: { reason: "CrashLoopBackOff" } };

  test("is up if the helper runs", () => expect(isUp({ running: {} }, false)).toBe(true));
  test("is not up if the helper fails", () => expect(isUp(failed, false)).toBe(false));
  test("stays up if the helper fails later", () => expect(isUp(failed, true)).toBe(true));
});
