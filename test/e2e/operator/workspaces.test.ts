/** Workspaces and Updates without a Stack, in the manifests of the Go operator's own end-to-end tests. */
import { expect, test } from "bun:test";

import type { Update, Workspace } from "@pko/api";
import { builtin } from "@pko/kube";
import { updates, workspaces } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { applyTo, inPod, useScene } from "../harness.ts";

const slow = 600_000;
const patience = { timeoutMs: 240_000, pollMs: 100 };
const scene = useScene("workspaces");

/** As in its test "issue-801": the reference's manifest, on this cluster's image and Git server. */
function bareWorkspace(name: string, image: string): object {
  return {
    apiVersion: "auto.pulumi.com/v1alpha1",
    kind: "Workspace",
    metadata: { name },
    spec: {
      image,
      securityProfile: "restricted",
      serviceAccountName: "pulumi",
      git: { url: scene.git.url("random"), ref: "main", dir: "random-yaml", shallow: true },
      env: [
        { name: "PULUMI_CONFIG_PASSPHRASE", value: "test" },
        { name: "PULUMI_BACKEND_URL", value: "file:///state/" },
      ],
      podTemplate: {
        spec: {
          containers: [{ name: "pulumi", volumeMounts: [{ name: "state", mountPath: "/state" }] }],
          volumes: [{ name: "state", emptyDir: {} }],
        },
      },
    },
  };
}

function updateOf(name: string, workspaceName: string, spec: object): object {
  return {
    apiVersion: "auto.pulumi.com/v1alpha1",
    kind: "Update",
    metadata: { name },
    spec: { workspaceName, type: "up", ...spec },
  };
}

const program = (body: object): Record<string, string> => ({
  "random-yaml/Pulumi.yaml": JSON.stringify({ name: "random-yaml", runtime: "yaml", ...body }),
});
const kept = { kept: { type: "pulumi:index:Stash", properties: { input: "kept" } } };

async function workspaceUntil(name: string, reason: string): Promise<Workspace> {
  const { client, namespace } = scene;
  let last: Workspace | undefined;
  const isSo = async (): Promise<Workspace | false> => {
    last = await client.get(workspaces, { name, namespace });
    const ready = last.status?.conditions?.find(({ type }) => type === "Ready");
    return last.status?.observedGeneration === last.metadata.generation && ready?.reason === reason && last;
  };
  return await waitFor(isSo, { ...patience, what: `Workspace ${name}: ${reason}` }).catch((error: unknown) => {
    throw new Error(`its status: ${JSON.stringify(last?.status)}`, { cause: error });
  });
}

async function ended(name: string): Promise<Update> {
  const { client, namespace } = scene;
  const isEnded = async (): Promise<Update | false> => {
    const update = await client.get(updates, { name, namespace });
    return Boolean(update.status?.endTime) && update;
  };
  return await waitFor(isEnded, { ...patience, what: `the end of the Update ${name}` });
}

const failedReason = ({ status }: Update): string | undefined =>
  status?.conditions?.find(({ type, status: holds }) => type === "Failed" && holds === "True")?.reason;

async function outputsOf(update: string): Promise<Record<string, string>> {
  const { client, namespace } = scene;
  const { data = {} } = await client.get(builtin.secrets, { name: `${update}-stack-outputs`, namespace });
  return Object.fromEntries(
    Object.entries(data).map(([name, value]) => [name, Buffer.from(value, "base64").toString()]),
  );
}

test(
  "a Workspace without stacks becomes Ready once its image is repaired, and Updates run on the stacks that they name",
  async () => {
    scene.git.create("random").commit(program({ resources: kept, outputs: { stack: "${pulumi.stack}" } }));
    await applyTo(scene, bareWorkspace("bare", "pulumi/nosuchimage:3.147.0-nonroot"));
    const { client, namespace } = scene;
    const broken = await waitFor(() => client.find(builtin.pods, { name: "bare-workspace-0", namespace }), patience);
    await applyTo(scene, bareWorkspace("bare", "pulumi/pulumi:latest-nonroot"));
    await workspaceUntil("bare", "Succeeded");
    const pod = await client.get(builtin.pods, { name: "bare-workspace-0", namespace });
    expect(pod.metadata.uid).not.toBe(broken.metadata.uid);

    await applyTo(scene, updateOf("missing", "bare", { stackName: "dev" }));
    const missing = await ended("missing");
    expect(failedReason(missing)).toBe("UpdateFailed");
    expect(missing.status?.message).toContain("add it to spec.stacks of the Workspace with create: true");

    await inPod(scene, "bare", "pulumi stack init dev && pulumi stack init prod");
    await applyTo(
      scene,
      updateOf("up-dev", "bare", { stackName: "dev" }),
      updateOf("up-prod", "bare", { stackName: "prod" }),
    );
    expect(failedReason(await ended("up-dev"))).toBeUndefined();
    expect(failedReason(await ended("up-prod"))).toBeUndefined();
    expect(await outputsOf("up-dev")).toEqual({ stack: '"dev"' });
    expect(await outputsOf("up-prod")).toEqual({ stack: '"prod"' });
  },
  slow,
);

test(
  "a Workspace with two stacks keeps their configuration apart, and an Update on a third fails",
  async () => {
    const config = { size: { type: "string" } };
    scene.git.create("random-two").commit(program({ config, resources: kept, outputs: { size: "${size}" } }));
    const { spec, ...rest } = bareWorkspace("two", "pulumi/pulumi:latest-nonroot") as { readonly spec: object };
    const git = { url: scene.git.url("random-two"), ref: "main", dir: "random-yaml" };
    const small = { name: "small", create: true, config: [{ key: "size", value: "S" }] };
    const large = { name: "large", create: true, config: [{ key: "size", value: "canary-L", secret: true }] };
    await applyTo(scene, { ...rest, spec: { ...spec, git, stacks: [small, large] } });
    await workspaceUntil("two", "Succeeded");
    await applyTo(
      scene,
      updateOf("up-small", "two", { stackName: "small" }),
      updateOf("up-other", "two", { stackName: "other" }),
      updateOf("up-large", "two", { stackName: "large" }),
    );
    expect(failedReason(await ended("up-small"))).toBeUndefined();
    expect(failedReason(await ended("up-large"))).toBeUndefined();
    expect(await outputsOf("up-small")).toEqual({ size: '"S"' });
    expect(await outputsOf("up-large")).toEqual({ size: '"canary-L"' });
    const other = await ended("up-other");
    expect(other.status?.message).toContain("the Workspace two has no stack other, only small, large");

    await applyTo(scene, updateOf("down-small", "two", { stackName: "small", type: "destroy", remove: true }));
    expect(failedReason(await ended("down-small"))).toBeUndefined();
    await applyTo(scene, updateOf("again-large", "two", { stackName: "large", expectNoChanges: true }));
    expect(failedReason(await ended("again-large"))).toBeUndefined();
    expect(await scene.operator.log()).not.toContain("canary");
  },
  slow,
);
