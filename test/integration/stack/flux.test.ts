/** Sources of Flux's shape on a real API server: a kind that comes, goes and changes its version; what its objects say. */
import { expect, test } from "bun:test";
import type { Stack } from "@pko/api";
import { isNotFound, resource, type KubeObject } from "@pko/kube";
import { workspaces } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { condition, patience, reasonOf, Stage } from "./harness.ts";

const message = (stack: Stack): string => condition(stack, "Ready")?.message ?? "";

const group = "source.toolkit.fluxcd.io";
const names = { kind: "OCIRepository", plural: "ocirepositories", namespaced: true };
const repositories = (version: string) => resource<KubeObject>({ apiVersion: `${group}/${version}`, ...names });

const definitions = resource<KubeObject & { spec: object }>({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
});
const definition = { name: `${names.plural}.${group}` };

/** The kind as Flux serves it, without its schema. */
async function define({ client }: Stage, ...versions: readonly string[]): Promise<void> {
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  await client.create(definitions, {
    apiVersion: definitions.apiVersion,
    kind: definitions.kind,
    metadata: definition,
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

async function remove({ client }: Stage): Promise<void> {
  await client.delete(definitions, definition);
  const isGone = async (): Promise<boolean> => (await client.find(definitions, definition)) === undefined;
  await waitFor(isGone, { timeoutMs: 30_000 });
}

async function become(
  stage: Stage,
  version: string,
  object: { letter: string; revision?: string; ready?: "True" | "False" },
): Promise<void> {
  const { letter, ready = "True", revision = `main@${letter}` } = object;
  const artifact = { url: `http://source/${letter}.tar.gz`, digest: digest(letter), revision };
  const conditions = [{ type: "Ready", status: ready, message: "told" }];
  const ref = { namespace: stage.namespace, name: "repo" };
  await stage.client.patch(repositories(version), ref, {
    patch: { type: "merge", body: { status: { observedGeneration: 1, artifact, conditions } } },
    subresource: "status",
  });
}

async function create(stage: Stage, version: string): Promise<void> {
  const { apiVersion, kind } = repositories(version);
  const make = () =>
    stage.client.create(repositories(version), {
      apiVersion,
      kind,
      metadata: { namespace: stage.namespace, name: "repo" },
    });
  // The definition is there a moment before its objects can be.
  await waitFor(() => make().catch((error: unknown) => (isNotFound(error) ? undefined : Promise.reject(error))), {
    timeoutMs: 30_000,
  });
}

/** The operator looks for the kind every half minute. */
async function says(stage: Stage, words: string): Promise<void> {
  const isSaid = async (): Promise<boolean> => {
    stage.jump(31_000);
    return message(await stage.get("web")).includes(words);
  };
  await waitFor(isSaid, { timeoutMs: 60_000, what: words });
}

const digest = (letter: string): string => `sha256:${letter.repeat(64)}`;

test(
  "a kind that comes later and leaves again; an object that is absent, not ready, ready, of another revision",
  async () => {
    await using stage = await Stage.set();
    const sourceRef = { apiVersion: `${group}/v1`, kind: names.kind, name: "repo" };
    await stage.stack("web", { fluxSource: { sourceRef, dir: "infra" } });
    const unserved = await stage.becomes("web", "stalled", (stack) => reasonOf(stack) === "SourceUnavailable");
    expect(message(unserved)).toContain(`the cluster serves no OCIRepository of ${group}/v1`);
    await define(stage, "v1");
    await says(stage, "there is no OCIRepository repo");
    await create(stage, "v1");
    await stage.becomes("web", "told that it is not ready", (stack) => message(stack).includes("no artifact"));
    await become(stage, "v1", { letter: "a" });
    await stage.isReady("web", "main@a");
    const workspace = await stage.client.get(workspaces, { namespace: stage.namespace, name: "web" });
    expect(workspace.spec?.flux).toEqual({ url: "http://source/a.tar.gz", digest: digest("a"), dir: "infra" });
    await become(stage, "v1", { letter: "b" });
    await stage.isReady("web", "main@b");
    expect(stage.runs.length).toBe(2);

    await remove(stage);
    await says(stage, "the cluster serves no OCIRepository");
    await define(stage, "v1");
    await create(stage, "v1");
    await become(stage, "v1", { letter: "b" });
    await waitFor(
      async () => {
        stage.jump(31_000);
        return message(await stage.get("web")).includes("succeeded");
      },
      { timeoutMs: 60_000 },
    );
    // What was deployed is deployed still.
    expect(stage.runs.length).toBe(2);
    await remove(stage);
  },
  patience * 2,
);

test(
  "a source is used though Flux cannot fetch it now; its content decides, not the name of its revision; a new spec is waited for, not for ever",
  async () => {
    await using stage = await Stage.set();
    await define(stage, "v1");
    await create(stage, "v1");
    await become(stage, "v1", { letter: "a", ready: "False" });
    await stage.stack("web", {
      fluxSource: { sourceRef: { apiVersion: `${group}/v1`, kind: names.kind, name: "repo" } },
    });
    const first = await stage.isReady("web", "main@a");
    expect(message(first)).toContain("But OCIRepository repo is not ready: told");
    expect(first.status?.lastUpdate).toMatchObject({ lastAttemptedCommit: "main@a", digest: digest("a") });

    // Another commit with the same content is not run, the same tag with other content is.
    await become(stage, "v1", { letter: "a", revision: "main@b" });
    await become(stage, "v1", { letter: "b", revision: "main@a" });
    const hasRun = (letter: string) => (stack: Stack) => stack.status?.lastUpdate?.digest === digest(letter);
    const moved = await stage.becomes("web", "deployed from the tag that was moved", hasRun("b"));
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
    await remove(stage);
  },
  patience * 2,
);

test(
  "a version that the cluster serves is used; one that it has left behind is read in the one that it prefers",
  async () => {
    await using stage = await Stage.set();
    await define(stage, "v1", "v1beta2");
    await create(stage, "v1");
    const sourceRef = { apiVersion: `${group}/v1beta2`, kind: names.kind, name: "repo" };
    await become(stage, "v1beta2", { letter: "a" });
    await stage.stack("web", { fluxSource: { sourceRef } });
    await stage.isReady("web", "main@a");

    const { spec, metadata } = await stage.client.get(definitions, definition);
    const { versions } = structuredClone(spec) as { versions: { name: string; served: boolean }[] };
    for (const version of versions) version.served = version.name === "v1";
    const body = { metadata: { resourceVersion: metadata.resourceVersion }, spec: { versions } };
    await stage.client.patch(definitions, definition, { patch: { type: "merge", body } });
    await become(stage, "v1", { letter: "b" });
    const isFollowed = async (): Promise<boolean> => {
      stage.jump(31_000);
      return (await stage.get("web")).status?.lastUpdate?.lastSuccessfulCommit === "main@b";
    };
    await waitFor(isFollowed, { timeoutMs: 60_000 });
    await remove(stage);
  },
  patience * 2,
);
