/** Sources of Flux, made by its own source-controller: followed, waited for, and refused when they are not what they say. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createRepository, serveGit, type GitServer, type TestRepository } from "@pko/agent/testing";
import type { Stack } from "@pko/api";
import { network } from "@pko/cluster";
import { waitFor } from "@pko/testkit";

import {
  apply,
  clearNamespace,
  getStack,
  isReady,
  kubectl,
  newNamespace,
  onFileBackend,
  stackUntil,
  startOperator,
  updatesOf,
  type Operator,
  type Place,
} from "../harness.ts";
import { yamlProject } from "../operator/programs.ts";
import { serveBucket, type BucketServer } from "./bucket-server.ts";
import { serveRegistry, type Registry } from "./oci-layout.ts";
import { startSourceController, type SourceController } from "./source-controller.ts";

const slow = 600_000;
const group = "source.toolkit.fluxcd.io";
const repositories = mkdtempSync(join(tmpdir(), "pko-git-"));
/** The most that an artifact may unpack to. */
const maxBytes = 100_000;

let operator: Operator;
let place: Place;
let flux: SourceController;
let git: GitServer;
let registry: Registry;
let bucket: BucketServer;

beforeAll(async () => {
  const namespace = await newNamespace("flux");
  flux = await startSourceController(namespace);
  operator = await startOperator([namespace], `--flux-max-unpacked-bytes=${maxBytes}`);
  place = { client: operator.client, namespace };
  git = serveGit(repositories, { hostname: network.machine });
  registry = serveRegistry();
  bucket = serveBucket("programs", "access-key");
}, slow);

afterAll(async () => {
  await clearNamespace(place.namespace);
  await kubectl(["delete", "gitrepositories,ocirepositories,buckets", "--all", "-n", place.namespace]);
  await Promise.all([git.stop(), registry.stop(), bucket.stop(), operator.stop(), flux.stop()]);
});

const project = (text: string): string => yamlProject(text)["Pulumi.yaml"] ?? "";

test.concurrent(
  "a GitRepository: absent, not ready, deployed from its folder, followed in the same pod, too large",
  async () => {
    const repository = createRepository(repositories, "web");
    repository.commit({ "README.md": "nothing yet" });
    // The documents' version, which this controller no longer serves.
    const sourceRef = { apiVersion: `${group}/v1beta2`, kind: "GitRepository", name: "web" };
    await deploy("web", { sourceRef, dir: "infra" });
    await told("web", "there is no GitRepository web");
    await apply(gitRepository("web", repository, { branch: "release" }));
    await told("web", "GitRepository web is not ready: failed to checkout");

    repository.commit({ "infra/Pulumi.yaml": project("one") }, "release");
    await refresh("gitrepository", "web");
    const deployed = await stackUntil(place, "web", isReady);
    expect(deployed.status?.outputs).toEqual({ text: "one" });
    expect(deployed.status?.lastUpdate?.lastSuccessfulCommit).toMatch(/^release@sha1:[0-9a-f]{40}$/);
    const pod = await podOf("web");

    repository.commit({ "infra/Pulumi.yaml": project("two") }, "release");
    await refresh("gitrepository", "web");
    await stackUntil(place, "web", hasText("two"));
    expect(await podOf("web")).toBe(pod);

    // Flux cannot fetch it any more: what it has fetched is there still.
    await apply(gitRepository("web", repository, { branch: "gone" }));
    const source = ["gitrepository/web", "-n", place.namespace];
    await kubectl(["wait", ...source, "--for=condition=Ready=False", "--timeout=120s"]);
    await requestUpdate("web");
    const asked = await stackUntil(place, "web", ({ status }) => status?.lastUpdate?.reconcileRequest === "again");
    expect(isReady(asked)).toBe(true);
    await apply(gitRepository("web", repository, { branch: "release" }));
    expect(await updatesOf(place, "web")).toHaveLength(3);

    repository.commit({ "infra/Pulumi.yaml": project("three"), "infra/ballast": "x".repeat(maxBytes) }, "release");
    await refresh("gitrepository", "web");
    await told("web", `more than ${maxBytes} bytes`, "WorkspaceFailed");
    repository.commit({ "elsewhere/Pulumi.yaml": project("four") }, "release");
    await refresh("gitrepository", "web");
    await told("web", 'the source has no folder "infra"', "WorkspaceFailed");
    repository.commit({ "infra/Pulumi.yaml": project("five") }, "release");
    await refresh("gitrepository", "web");
    await stackUntil(place, "web", hasText("five"));
    expect(await podOf("web")).toBe(pod);
  },
  slow,
);

test.concurrent(
  "an OCIRepository: a tag that moves is followed; a tag that is not there is told",
  async () => {
    await apply({
      apiVersion: `${group}/v1`,
      kind: "OCIRepository",
      metadata: { name: "image", namespace: place.namespace },
      spec: { interval: "1h", url: registry.url("programs/image"), insecure: true, ref: { tag: "stable" } },
    });
    await deploy("image", { sourceRef: { apiVersion: `${group}/v1`, kind: "OCIRepository", name: "image" } });
    await told("image", "OCIRepository image is not ready");
    registry.push("programs/image:stable", yamlProject("one"));
    await refresh("ocirepository", "image");
    await stackUntil(place, "image", hasText("one"));
    registry.push("programs/image:stable", yamlProject("two"));
    await refresh("ocirepository", "image");
    await stackUntil(place, "image", hasText("two"));
  },
  slow,
);

test.concurrent(
  "a Bucket: credentials that are refused are told; objects that change are followed",
  async () => {
    bucket.files = { "app/Pulumi.yaml": project("one"), "other/file": "x" };
    const credentials = (accesskey: string): object => ({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "bucket", namespace: place.namespace },
      stringData: { accesskey, secretkey: "hush" },
    });
    await apply(credentials("stale-key"), {
      apiVersion: `${group}/v1`,
      kind: "Bucket",
      metadata: { name: "store", namespace: place.namespace },
      spec: {
        interval: "1h",
        provider: "generic",
        bucketName: "programs",
        endpoint: bucket.endpoint,
        region: "us-east-1",
        insecure: true,
        secretRef: { name: "bucket" },
      },
    });
    await deploy("store", { sourceRef: { apiVersion: `${group}/v1`, kind: "Bucket", name: "store" }, dir: "app" });
    await told("store", "Bucket store is not ready");
    await apply(credentials("access-key"));
    await refresh("bucket", "store");
    await stackUntil(place, "store", hasText("one"));
    bucket.files = { "app/Pulumi.yaml": project("two") };
    await refresh("bucket", "store");
    await stackUntil(place, "store", hasText("two"));
  },
  slow,
);

test.concurrent(
  "an artifact that is gone or is not the one that was announced is refused, and used once its source has made it anew",
  async () => {
    const names = ["gone", "forged"] as const;
    for (const name of names) {
      const repository = createRepository(repositories, name);
      repository.commit(yamlProject(name));
      await apply(gitRepository(name, repository, { branch: "main" }));
      const ready = `gitrepository/${name}`;
      await kubectl(["wait", ready, "-n", place.namespace, "--for=condition=Ready", "--timeout=120s"]);
    }
    rmSync(artifactOf("gone"));
    writeFileSync(artifactOf("forged"), "something else");
    for (const name of names) {
      await deploy(name, { sourceRef: { apiVersion: `${group}/v1`, kind: "GitRepository", name } });
    }
    await says("gone", "the artifact: not found (404)");
    await told("forged", "its digest is another", "WorkspaceFailed");
    for (const name of names) await refresh("gitrepository", name);
    for (const name of names) await stackUntil(place, name, hasText(name));
  },
  slow,
);

test.concurrent(
  "an ExternalArtifact, which another controller announces, is a source like Flux's own",
  async () => {
    const repository = createRepository(repositories, "handed-on");
    const commit = repository.commit(yamlProject("handed on"));
    repository.commit(yamlProject("something later"));
    await apply(gitRepository("handed-on", repository, { commit }));
    const source = ["gitrepository/handed-on", "-n", place.namespace];
    await kubectl(["wait", ...source, "--for=condition=Ready", "--timeout=120s"]);
    const artifact = JSON.parse(await kubectl(["get", ...source, "--output=jsonpath={.status.artifact}"])) as object;
    await apply({
      apiVersion: `${group}/v1`,
      kind: "ExternalArtifact",
      metadata: { name: "external", namespace: place.namespace },
      spec: {},
    });
    const sourceRef = { apiVersion: `${group}/v1`, kind: "ExternalArtifact", name: "external" };
    await deploy("external", { sourceRef });
    await told("external", "ExternalArtifact external has no artifact yet");
    const lastTransitionTime = new Date().toISOString();
    const ready = { type: "Ready", status: "True", reason: "Succeeded", message: "made", lastTransitionTime };
    const patch = JSON.stringify({ status: { artifact, conditions: [ready] } });
    const target = ["externalartifact", "external", "-n", place.namespace];
    await kubectl(["patch", ...target, "--subresource=status", "--type=merge", `--patch=${patch}`]);
    await stackUntil(place, "external", hasText("handed on"));
  },
  slow,
);

function gitRepository(name: string, { folder }: TestRepository, ref: object): object {
  const url = `http://${network.machine}:${git.port}/${folder.slice(repositories.length + 1)}`;
  const metadata = { name, namespace: place.namespace };
  return { apiVersion: `${group}/v1`, kind: "GitRepository", metadata, spec: { interval: "1h", url, ref } };
}

/** Where the controller keeps the present artifact of a GitRepository. */
function artifactOf(name: string): string {
  const folder = join(flux.storage, "gitrepository", place.namespace, name);
  const file = readdirSync(folder).find((each) => each.endsWith(".tar.gz") && !each.startsWith("latest")) ?? "";
  return join(folder, file);
}

async function deploy(name: string, fluxSource: object): Promise<void> {
  await apply({
    apiVersion: "pulumi.com/v1",
    kind: "Stack",
    metadata: { name, namespace: place.namespace },
    spec: { ...onFileBackend, stack: name, fluxSource },
  });
}

/** Asks Flux to look now; it would look once in the source's interval. */
async function refresh(kind: string, name: string): Promise<void> {
  const annotation = `reconcile.fluxcd.io/requestedAt=${crypto.randomUUID()}`;
  await kubectl(["annotate", kind, name, "-n", place.namespace, "--overwrite", annotation]);
}

async function requestUpdate(stack: string): Promise<void> {
  await kubectl(["annotate", "stack", stack, "-n", place.namespace, "pulumi.com/reconciliation-request=again"]);
}

const hasText =
  (text: string) =>
  (stack: Stack): boolean =>
    isReady(stack) && stack.status?.outputs?.["text"] === text;

async function told(name: string, words: string, reason = "SourceUnavailable"): Promise<void> {
  await stackUntil(place, name, ({ status }) =>
    Boolean(
      status?.conditions?.some(
        (condition) => condition.type === "Stalled" && condition.reason === reason && condition.message.includes(words),
      ),
    ),
  );
}

/** In whatever condition: what passes by itself is not called stalled. */
async function says(name: string, words: string): Promise<void> {
  const isSaid = async (): Promise<boolean> =>
    JSON.stringify((await getStack(place, name)).status?.conditions ?? []).includes(words);
  await waitFor(isSaid, { timeoutMs: 240_000, what: `Stack ${name}: ${words}` });
}

async function podOf(stack: string): Promise<string> {
  const pod = `${stack}-workspace-0`;
  return await kubectl(["get", "pod", pod, "-n", place.namespace, "--output=jsonpath={.metadata.uid}"]);
}
