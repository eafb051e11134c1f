/** Flux sources on a real API server: the CRD is installed, removed and changes its versions; its objects report states. */
import { expect, test } from "bun:test";
import type { Stack } from "@pko/api";
import { isNotFound, resource, type KubeObject } from "@pko/kube";
import { workspaces } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { condition, testTimeoutMs, reasonOf, Stage } from "./harness.ts";

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
async function installCrd({ client }: Stage, ...versions: readonly string[]): Promise<void> {
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

async function removeCrd({ client }: Stage): Promise<void> {
  await client.delete(crds, crd);
  const isDeleted = async (): Promise<boolean> => (await client.find(crds, crd)) === undefined;
  await waitFor(isDeleted, { timeoutMs: 30_000 });
}

async function reportArtifact(
  stage: Stage,
  version: string,
  object: { letter: string; revision?: string; ready?: "True" | "False" },
): Promise<void> {
  const { letter, ready = "True", revision = `main@${letter}` } = object;
  const artifact = { url: `http://source/${letter}.tar.gz`, digest: digest(letter), revision };
  const conditions = [{ type: "Ready", status: ready, message: "not reachable" }];
  const ref = { namespace: stage.namespace, name: "repo" };
  await stage.client.patch(repositories(version), ref, {
    patch: { type: "merge", body: { status: { observedGeneration: 1, artifact, conditions } } },
    subresource: "status",
  });
}

async function create(stage: Stage, version: string): Promise<void> {
  const { apiVersion, kind } = repositories(version);
  const tryCreate = () =>
    stage.client.create(repositories(version), {
      apiVersion,
      kind,
      metadata: { namespace: stage.namespace, name: "repo" },
    });
  // The CRD exists a moment before its objects can be created.
  await waitFor(() => tryCreate().catch((error: unknown) => (isNotFound(error) ? undefined : Promise.reject(error))), {
    timeoutMs: 30_000,
  });
}

/** The operator discovers kinds every half minute. */
async function reports(stage: Stage, text: string): Promise<void> {
  const isReported = async (): Promise<boolean> => {
    stage.jump(31_000);
    return message(await stage.get("web")).includes(text);
  };
  await waitFor(isReported, { timeoutMs: 60_000, what: text });
}

const digest = (letter: string): string => `sha256:${letter.repeat(64)}`;

test(
  "the CRD is installed late and removed; the object is absent, not ready, ready, and has another revision",
  async () => {
    await using stage = await Stage.set();
    const sourceRef = { apiVersion: `${group}/v1`, kind: names.kind, name: "repo" };
    await stage.stack("web", { fluxSource: { sourceRef, dir: "infra" } });
    const unserved = await stage.becomes("web", "stalled", (stack) => reasonOf(stack) === "SourceUnavailable");
    expect(message(unserved)).toContain(`the cluster serves no OCIRepository of ${group}/v1`);
    await installCrd(stage, "v1");
    await reports(stage, "there is no OCIRepository repo");
    await create(stage, "v1");
    await stage.becomes("web", "waiting for an artifact", (stack) => message(stack).includes("no artifact"));
    await reportArtifact(stage, "v1", { letter: "a" });
    await stage.isReady("web", "main@a");
    const workspace = await stage.client.get(workspaces, { namespace: stage.namespace, name: "web" });
    expect(workspace.spec?.flux).toEqual({ url: "http://source/a.tar.gz", digest: digest("a"), dir: "infra" });
    await reportArtifact(stage, "v1", { letter: "b" });
    await stage.isReady("web", "main@b");
    expect(stage.runs.length).toBe(2);

    await removeCrd(stage);
    await reports(stage, "the cluster serves no OCIRepository");
    await installCrd(stage, "v1");
    await create(stage, "v1");
    await reportArtifact(stage, "v1", { letter: "b" });
    await waitFor(
      async () => {
        stage.jump(31_000);
        return message(await stage.get("web")).includes("succeeded");
      },
      { timeoutMs: 60_000 },
    );
    // The same revision is not deployed again.
    expect(stage.runs.length).toBe(2);
    await removeCrd(stage);
  },
  testTimeoutMs * 2,
);

test(
  "the last artifact is used while Flux cannot fetch; its digest decides, not its revision; a new spec is waited for, with a limit",
  async () => {
    await using stage = await Stage.set();
    await installCrd(stage, "v1");
    await create(stage, "v1");
    await reportArtifact(stage, "v1", { letter: "a", ready: "False" });
    await stage.stack("web", {
      fluxSource: { sourceRef: { apiVersion: `${group}/v1`, kind: names.kind, name: "repo" } },
    });
    const first = await stage.isReady("web", "main@a");
    expect(message(first)).toContain("Warning: OCIRepository repo is not ready: not reachable");
    expect(first.status?.lastUpdate).toMatchObject({ lastAttemptedCommit: "main@a", digest: digest("a") });

    // Another commit with the same content is not run, the same tag with other content is.
    await reportArtifact(stage, "v1", { letter: "a", revision: "main@b" });
    await reportArtifact(stage, "v1", { letter: "b", revision: "main@a" });
    const hasRun = (letter: string) => (stack: Stack) => stack.status?.lastUpdate?.digest === digest(letter);
    const moved = await stage.becomes("web", "deployed from the moved tag", hasRun("b"));
    expect(moved.status?.lastUpdate?.lastSuccessfulCommit).toBe("main@a");
    expect(stage.runs.length).toBe(2);

    const ref = { namespace: stage.namespace, name: "repo" };
    const body = { spec: { ref: { tag: "next" } } };
    await stage.client.patch(repositories("v1"), ref, { patch: { type: "merge", body } });
    await stage.stack("web", {
      fluxSource: { sourceRef: { apiVersion: `${group}/v1`, kind: names.kind, name: "repo" }, dir: "infra" },
    });
    await stage.becomes("web", "waiting for Flux", (stack) => message(stack).includes("the new spec of OCIRepository"));
    expect(stage.runs.length).toBe(2);
    stage.jump(61_000);
    await stage.isReady("web", "main@a");
    expect(stage.runs.length).toBe(3);
    await removeCrd(stage);
  },
  testTimeoutMs * 2,
);

test(
  "uses a version that the cluster serves, and the preferred version in place of one that it no longer serves",
  async () => {
    await using stage = await Stage.set();
    await installCrd(stage, "v1", "v1beta2");
    await create(stage, "v1");
    const sourceRef = { apiVersion: `${group}/v1beta2`, kind: names.kind, name: "repo" };
    await reportArtifact(stage, "v1beta2", { letter: "a" });
    await stage.stack("web", { fluxSource: { sourceRef } });
    await stage.isReady("web", "main@a");

    const { spec, metadata } = await stage.client.get(crds, crd);
    const { versions } = structuredClone(spec) as { versions: { name: string; served: boolean }[] };
    for (const version of versions) version.served = version.name === "v1";
    const body = { metadata: { resourceVersion: metadata.resourceVersion }, spec: { versions } };
    await stage.client.patch(crds, crd, { patch: { type: "merge", body } });
    await reportArtifact(stage, "v1", { letter: "b" });
    const isFollowed = async (): Promise<boolean> => {
      stage.jump(31_000);
      return (await stage.get("web")).status?.lastUpdate?.lastSuccessfulCommit === "main@b";
    };
    await waitFor(isFollowed, { timeoutMs: 60_000 });
    await removeCrd(stage);
  },
  testTimeoutMs * 2,
);
