/** Workspaces and Updates without a Stack, with the manifests of the Go operator's end-to-end tests. */
import { expect, test } from "bun:test";

import type { Update, Workspace } from "@pko/api";
import { builtin } from "@pko/kube";
import { updates, workspaces } from "@pko/operator/kinds";
import { waitFor } from "@pko/testkit";

import { applyTo, execInPod, readSecret, smallResources, useScene } from "../harness.ts";

const slow = 600_000;
const waitOptions = { timeoutMs: 240_000, pollMs: 100 };
const scene = useScene("workspaces");

/** The manifest of the Go operator's test "issue-801", with the image and Git server of this cluster. */
function workspaceWithoutStacks(name: string, image: string): object {
  return {
    apiVersion: "auto.pulumi.com/v1alpha1",
    kind: "Workspace",
    metadata: { name },
    spec: {
      image,
      securityProfile: "restricted",
      serviceAccountName: "pulumi",
      resources: smallResources,
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

function newUpdate(name: string, workspaceName: string, spec: object): object {
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
  const poll = async (): Promise<Workspace | false> => {
    last = await client.get(workspaces, { name, namespace });
    const ready = last.status?.conditions?.find(({ type }) => type === "Ready");
    return last.status?.observedGeneration === last.metadata.generation && ready?.reason === reason && last;
  };
  return await waitFor(poll, { ...waitOptions, what: `Workspace ${name}: ${reason}` }).catch((error: unknown) => {
    throw new Error(`last status: ${JSON.stringify(last?.status)}`, { cause: error });
  });
}

async function updateResult(name: string): Promise<Update> {
  const { client, namespace } = scene;
  const isEnded = async (): Promise<Update | false> => {
    const update = await client.get(updates, { name, namespace });
    return Boolean(update.status?.endTime) && update;
  };
  return await waitFor(isEnded, { ...waitOptions, what: `the Update ${name} to end` });
}

/** Undefined if the Update succeeded. */
const failureReason = ({ status }: Update): string | undefined =>
  status?.conditions?.find(({ type, status: value }) => type === "Failed" && value === "True")?.reason;

const updateOutputs = (update: string): Promise<Record<string, string>> => readSecret(scene, `${update}-stack-outputs`);

test(
  "a Workspace without stacks becomes ready once its image is fixed, and Updates run on the stacks that they name",
  async () => {
    scene.git.create("random").commit(program({ resources: kept, outputs: { stack: "${pulumi.stack}" } }));
    await applyTo(scene, workspaceWithoutStacks("bare", "pulumi/nosuchimage:3.147.0-nonroot"));
    const { client, namespace } = scene;
    const broken = await waitFor(() => client.find(builtin.pods, { name: "bare-workspace-0", namespace }), waitOptions);
    await applyTo(scene, workspaceWithoutStacks("bare", "pulumi/pulumi:latest-nonroot"));
    await workspaceUntil("bare", "Succeeded");
    const pod = await client.get(builtin.pods, { name: "bare-workspace-0", namespace });
    expect(pod.metadata.uid).not.toBe(broken.metadata.uid);

    await applyTo(scene, newUpdate("missing", "bare", { stackName: "dev" }));
    const missing = await updateResult("missing");
    expect(failureReason(missing)).toBe("UpdateFailed");
    expect(missing.status?.message).toContain("add it to the Workspace's spec.stacks");

    await execInPod(scene, "bare", "pulumi stack init dev && pulumi stack init prod");
    await applyTo(
      scene,
      newUpdate("up-dev", "bare", { stackName: "dev" }),
      newUpdate("up-prod", "bare", { stackName: "prod" }),
    );
    expect(failureReason(await updateResult("up-dev"))).toBeUndefined();
    expect(failureReason(await updateResult("up-prod"))).toBeUndefined();
    expect(await updateOutputs("up-dev")).toEqual({ stack: '"dev"' });
    expect(await updateOutputs("up-prod")).toEqual({ stack: '"prod"' });
  },
  slow,
);

test(
  "a Workspace with two stacks keeps their configuration separate, and an Update of an unknown stack fails",
  async () => {
    const config = { size: { type: "string" } };
    scene.git.create("random-two").commit(program({ config, resources: kept, outputs: { size: "${size}" } }));
    const { spec, ...rest } = workspaceWithoutStacks("two", "pulumi/pulumi:latest-nonroot") as {
      readonly spec: object;
    };
    const git = { url: scene.git.url("random-two"), ref: "main", dir: "random-yaml" };
    const small = { name: "small", create: true, config: [{ key: "size", value: "S" }] };
    const large = { name: "large", create: true, config: [{ key: "size", value: "canary-L", secret: true }] };
    await applyTo(scene, { ...rest, spec: { ...spec, git, stacks: [small, large] } });
    await workspaceUntil("two", "Succeeded");
    await applyTo(
      scene,
      newUpdate("up-small", "two", { stackName: "small" }),
      newUpdate("up-other", "two", { stackName: "other" }),
      newUpdate("up-large", "two", { stackName: "large" }),
    );
    expect(failureReason(await updateResult("up-small"))).toBeUndefined();
    expect(failureReason(await updateResult("up-large"))).toBeUndefined();
    expect(await updateOutputs("up-small")).toEqual({ size: '"S"' });
    expect(await updateOutputs("up-large")).toEqual({ size: '"canary-L"' });
    const other = await updateResult("up-other");
    expect(other.status?.message).toContain("the Workspace two has no stack other, only small, large");

    await applyTo(scene, newUpdate("down-small", "two", { stackName: "small", type: "destroy", remove: true }));
    expect(failureReason(await updateResult("down-small"))).toBeUndefined();
    await applyTo(scene, newUpdate("unchanged-large", "two", { stackName: "large", expectNoChanges: true }));
    expect(failureReason(await updateResult("unchanged-large"))).toBeUndefined();
    expect(await scene.operator.log()).not.toContain("canary");
  },
  slow,
);
