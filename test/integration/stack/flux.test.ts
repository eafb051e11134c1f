/** Flux sources on a real API server: the CRD is installed, removed and changes its versions; its objects report states. */
import { expect, test } from "bun:test";
import type { Stack } from "@pko/api";
import { isNotFound, resource, type KubeObject } from "@pko/kube";
import { workspaces } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { condition, testTimeoutMs, reasonOf, StackScene } from "./scene.ts";

const message = (stack: Stack): string => condition(stack, "Ready")?.message ?? "";

const group = "source.toolkit.fluxcd.io";
const names = { kind: "OCIRepository", plural: "ocirepositories", namespaced: true };
const repositories = (version: string) => resource<KubeObject>({ apiVersion: `${group}/${version}`, ...names });

const crds = resource<KubeObject & { spec: object }>({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
});
const crd = { name: `${names.plural}.${group}` };

/** The CRD of Flux, without its schema. */
async function installCrd({ client }: StackScene, ...versions: readonly string[]): Promise<void> {
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  await client.create(crds, {
    apiVersion: crds.apiVersion,
    kind: crds.kind,
    metadata: crd,
    spec: {
      group,
      scope: "Namespaced",
      names: { kind: names.kind, listKind: `${names.kind}List`, plural: names.plural, singular: "ocirepository" },
      versions: versions.map((name, index) => ({
        name,
        served: true,
        storage: index === 0,
        subresources: { status: {} },
        schema,
      })),
    },
  });
}

async function removeCrd({ client }: StackScene): Promise<void> {
  await client.delete(crds, crd);
  const isDeleted = async (): Promise<boolean> => (await client.find(crds, crd)) === undefined;
  await waitFor(isDeleted, { timeoutMs: 30_000 });
}

async function reportArtifact(
  scene: StackScene,
  version: string,
  object: { letter: string; revision?: string; ready?: "True" | "False" },
): Promise<void> {
  const { letter, ready = "True", revision = `main@${letter}` } = object;
  const artifact = { url: `http://source/${letter}.tar.gz`, digest: digest(letter), revision };
  const conditions = [{ type: "Ready", status: ready, message: "not reachable" }];
  const ref = { namespace: scene.namespace, name: "repo" };
  await scene.client.patch(repositories(version), ref, {
    patch: { type: "merge", body: { status: { observedGeneration: 1, artifact, conditions } } },
    subresource: "status",
  });
}

async function create(scene: StackScene, version: string): Promise<void> {
  const { apiVersion, kind } = repositories(version);
  const tryCreate = () =>
    scene.client.create(repositories(version), {
      apiVersion,
      kind,
      metadata: { namespace: scene.namespace, name: "repo" },
    });
  // The CRD exists a moment before its objects can be created.
  await waitFor(() => tryCreate().catch((error: unknown) => (isNotFound(error) ? undefined : Promise.reject(error))), {
    timeoutMs: 30_000,
  });
}

/** The operator discovers kinds every half minute. */
async function reports(scene: StackScene, text: string): Promise<void> {
  const isReported = async (): Promise<boolean> => {
    scene.jump(31_000);
    return message(await scene.get("web")).includes(text);
  };
  await waitFor(isReported, { timeoutMs: 60_000, what: text });
}

const digest = (letter: string): string => `sha256:${letter.repeat(64)}`;

test(
  "the CRD is installed late and removed; the object is absent, not ready, ready, and has another revision",
  async () => {
    await using scene = await StackScene.open();
    const sourceRef = { apiVersion: `${group}/v1`, kind: names.kind, name: "repo" };
    await scene.stack("web", { fluxSource: { sourceRef, dir: "infra" } });
    const unserved = await scene.becomes("web", "stalled", (stack) => reasonOf(stack) === "SourceUnavailable");
    expect(message(unserved)).toContain(`the cluster serves no OCIRepository of ${group}/v1`);
    await installCrd(scene, "v1");
    await reports(scene, "there is no OCIRepository repo");
    await create(scene, "v1");
    await scene.becomes("web", "waiting for an artifact", (stack) => message(stack).includes("no artifact"));
    await reportArtifact(scene, "v1", { letter: "a" });
    await scene.isReady("web", "main@a");
    const workspace = await scene.client.get(workspaces, { namespace: scene.namespace, name: "web" });
    expect(workspace.spec?.flux).toEqual({ url: "http://source/a.tar.gz", digest: digest("a"), dir: "infra" });
    await reportArtifact(scene, "v1", { letter: "b" });
    await scene.isReady("web", "main@b");
    expect(scene.runs.length).toBe(2);

    await removeCrd(scene);
    await reports(scene, "the cluster serves no OCIRepository");
    await installCrd(scene, "v1");
    await create(scene, "v1");
    await reportArtifact(scene, "v1", { letter: "b" });
    await waitFor(
      async () => {
        scene.jump(31_000);
        return message(await scene.get("web")).includes("succeeded");
      },
      { timeoutMs: 60_000 },
    );
    // The same revision is not deployed again.
    expect(scene.runs.length).toBe(2);
    await removeCrd(scene);
  },
  testTimeoutMs * 2,
);

test(
  "the last artifact is used while Flux cannot fetch; its digest decides, not its revision; a new spec is waited for, with a limit",
  async () => {
    await using scene = await StackScene.open("without operator");
    const { proxy, client } = await scene.proxy();
    scene.start({ client });
    await installCrd(scene, "v1");
    await create(scene, "v1");
    await reportArtifact(scene, "v1", { letter: "a", ready: "False" });
    await scene.stack("web", {
      fluxSource: { sourceRef: { apiVersion: `${group}/v1`, kind: names.kind, name: "repo" } },
    });
    const first = await scene.isReady("web", "main@a");
    expect(message(first)).toContain("Warning: OCIRepository repo is not ready: not reachable");
    expect(first.status?.lastUpdate).toMatchObject({ lastAttemptedCommit: "main@a", digest: digest("a") });

    // Another commit with the same content is not run, the same tag with other content is.
    await reportArtifact(scene, "v1", { letter: "a", revision: "main@b" });
    await reportArtifact(scene, "v1", { letter: "b", revision: "main@a" });
    const hasRun = (letter: string) => (stack: Stack) => stack.status?.lastUpdate?.digest === digest(letter);
    const moved = await scene.becomes("web", "deployed from the moved tag", hasRun("b"));
    expect(moved.status?.lastUpdate?.lastSuccessfulCommit).toBe("main@a");
    expect(scene.runs.length).toBe(2);

    const ref = { namespace: scene.namespace, name: "repo" };
    const body = { spec: { ref: { tag: "next" } } };
    const seen = Promise.withResolvers<void>();
    proxy.onEvent(async ({ type }, { resource }) => {
      if (resource === names.plural && type === "MODIFIED") seen.resolve();
      return "pass" as const;
    });
    await scene.client.patch(repositories("v1"), ref, { patch: { type: "merge", body } });
    // If the operator saw the new spec of the Stack first, it would deploy the last artifact.
    await seen.promise;
    await scene.fence();
    await scene.stack("web", {
      fluxSource: { sourceRef: { apiVersion: `${group}/v1`, kind: names.kind, name: "repo" }, dir: "infra" },
    });
    await scene.becomes("web", "waiting for Flux", (stack) => message(stack).includes("the new spec of OCIRepository"));
    expect(scene.runs.length).toBe(2);
    scene.jump(61_000);
    await scene.isReady("web", "main@a");
    expect(scene.runs.length).toBe(3);
    await removeCrd(scene);
  },
  testTimeoutMs * 2,
);

test(
  "uses a version that the cluster serves, and the preferred version in place of one that it no longer serves",
  async () => {
    await using scene = await StackScene.open();
    await installCrd(scene, "v1", "v1beta2");
    await create(scene, "v1");
    const sourceRef = { apiVersion: `${group}/v1beta2`, kind: names.kind, name: "repo" };
    await reportArtifact(scene, "v1beta2", { letter: "a" });
    await scene.stack("web", { fluxSource: { sourceRef } });
    await scene.isReady("web", "main@a");

    const { spec, metadata } = await scene.client.get(crds, crd);
    const { versions } = structuredClone(spec) as { versions: { name: string; served: boolean }[] };
    for (const version of versions) version.served = version.name === "v1";
    const body = { metadata: { resourceVersion: metadata.resourceVersion }, spec: { versions } };
    await scene.client.patch(crds, crd, { patch: { type: "merge", body } });
    await reportArtifact(scene, "v1", { letter: "b" });
    const isFollowed = async (): Promise<boolean> => {
      scene.jump(31_000);
      return (await scene.get("web")).status?.lastUpdate?.lastSuccessfulCommit === "main@b";
    };
    await waitFor(isFollowed, { timeoutMs: 60_000 });
    await removeCrd(scene);
  },
  testTimeoutMs * 2,
);
