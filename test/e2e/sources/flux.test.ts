/** Flux sources of a real source-controller: Stacks follow them, wait for them, and reject artifacts with a wrong digest. */
import { beforeAll, expect, test } from "bun:test";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Stack } from "@pko/api";
import { waitFor } from "@pko/testkit";

import {
  applyTo,
  at,
  getStack,
  isReady,
  kubectl,
  listUpdates,
  newSecret,
  newStack,
  podUid,
  reconcileAndWait,
  stackUntil,
  stalledBy,
  useScene,
  yamlProject,
} from "../harness.ts";
import { serveBucket, type BucketServer } from "./bucket-server.ts";
import { serveRegistry, type Registry } from "./oci-layout.ts";
import { startSourceController, type SourceController } from "./source-controller.ts";

const slow = 600_000;
const group = "source.toolkit.fluxcd.io";
/** The operator's limit for unpacked artifacts. */
const maxBytes = 100_000;

let flux: SourceController;
let registry: Registry;
let bucket: BucketServer;

const scene = useScene("flux", {
  operator: async () => {
    flux = await startSourceController(scene.namespace);
    scene.defer(() => flux.stop());
    return { flags: [`--flux-max-unpacked-bytes=${maxBytes}`] };
  },
});

beforeAll(() => {
  registry = serveRegistry();
  bucket = serveBucket("programs", "access-key");
  scene.defer(() => Promise.all([registry.stop(), bucket.stop()]));
  // While the controller still runs, because it has to remove their finalizers.
  scene.defer(() => kubectl(["delete", "gitrepositories,ocirepositories,buckets", "--all", ...at(scene)]));
});

const project = (text: string): string => yamlProject(text)["Pulumi.yaml"] ?? "";

test.concurrent(
  "a GitRepository is reported while it is missing, not ready or too large, and is followed in the same pod",
  async () => {
    const repository = scene.git.create("web");
    repository.commit({ "README.md": "nothing yet" });
    // The docs use this version, which the controller no longer serves.
    const sourceRef = { apiVersion: `${group}/v1beta2`, kind: "GitRepository", name: "web" };
    await deploy("web", { sourceRef, dir: "infra" });
    await stalledBy(scene, "web", { message: "there is no GitRepository web" });
    await applyTo(scene, gitRepository("web", { branch: "release" }));
    await stalledBy(scene, "web", { message: "GitRepository web is not ready: failed to checkout" });

    repository.commit({ "infra/Pulumi.yaml": project("one") }, "release");
    await refresh("gitrepository", "web");
    const deployed = await stackUntil(scene, "web", isReady);
    expect(deployed.status?.outputs).toEqual({ text: "one" });
    expect(deployed.status?.lastUpdate?.lastSuccessfulCommit).toMatch(/^release@sha1:[0-9a-f]{40}$/);
    const pod = await podUid(scene, "web");

    repository.commit({ "infra/Pulumi.yaml": project("two") }, "release");
    await refresh("gitrepository", "web");
    await stackUntil(scene, "web", hasText("two"));
    expect(await podUid(scene, "web")).toBe(pod);

    // Flux can no longer fetch the branch, but still serves the last artifact.
    await applyTo(scene, gitRepository("web", { branch: "missing" }));
    await kubectl(["wait", "gitrepository/web", ...at(scene), "--for=condition=Ready=False", "--timeout=120s"]);
    await reconcileAndWait(scene, "web", "branch-missing");
    await applyTo(scene, gitRepository("web", { branch: "release" }));
    expect(await listUpdates(scene, "web")).toHaveLength(3);

    repository.commit({ "infra/Pulumi.yaml": project("three"), "infra/ballast": "x".repeat(maxBytes) }, "release");
    await refresh("gitrepository", "web");
    await stalledBy(scene, "web", { reason: "WorkspaceFailed", message: `more than ${maxBytes} bytes` });
    repository.commit({ "elsewhere/Pulumi.yaml": project("four") }, "release");
    await refresh("gitrepository", "web");
    await stalledBy(scene, "web", { reason: "WorkspaceFailed", message: 'the source has no folder "infra"' });
    repository.commit({ "infra/Pulumi.yaml": project("five") }, "release");
    await refresh("gitrepository", "web");
    await stackUntil(scene, "web", hasText("five"));
    expect(await podUid(scene, "web")).toBe(pod);
  },
  slow,
);

test.concurrent(
  "an OCIRepository is reported while its tag is missing, and is followed when the tag moves",
  async () => {
    await applyTo(scene, {
      apiVersion: `${group}/v1`,
      kind: "OCIRepository",
      metadata: { name: "image" },
      spec: { interval: "1h", url: registry.url("programs/image"), insecure: true, ref: { tag: "stable" } },
    });
    await deploy("image", { sourceRef: { apiVersion: `${group}/v1`, kind: "OCIRepository", name: "image" } });
    await stalledBy(scene, "image", { message: "OCIRepository image is not ready" });
    registry.push("programs/image:stable", yamlProject("one"));
    await refresh("ocirepository", "image");
    await stackUntil(scene, "image", hasText("one"));
    registry.push("programs/image:stable", yamlProject("two"));
    await refresh("ocirepository", "image");
    await stackUntil(scene, "image", hasText("two"));
  },
  slow,
);

test.concurrent(
  "a Bucket is reported while its credentials are rejected, and is followed when objects change",
  async () => {
    bucket.files = { "app/Pulumi.yaml": project("one"), "other/file": "x" };
    const credentials = (accesskey: string): object => newSecret("bucket", { accesskey, secretkey: "hush" });
    await applyTo(scene, credentials("stale-key"), {
      apiVersion: `${group}/v1`,
      kind: "Bucket",
      metadata: { name: "store" },
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
    await stalledBy(scene, "store", { message: "Bucket store is not ready" });
    await applyTo(scene, credentials("access-key"));
    await refresh("bucket", "store");
    await stackUntil(scene, "store", hasText("one"));
    bucket.files = { "app/Pulumi.yaml": project("two") };
    await refresh("bucket", "store");
    await stackUntil(scene, "store", hasText("two"));
  },
  slow,
);

test.concurrent(
  "an artifact that is missing or has a wrong digest is rejected, and is used once Flux has created it again",
  async () => {
    const names = ["missing", "forged"] as const;
    for (const name of names) {
      const repository = scene.git.create(name);
      repository.commit(yamlProject(name));
      await applyTo(scene, gitRepository(name, { branch: "main" }));
      const ready = `gitrepository/${name}`;
      await kubectl(["wait", ready, ...at(scene), "--for=condition=Ready", "--timeout=120s"]);
    }
    rmSync(artifactFile("missing"));
    writeFileSync(artifactFile("forged"), "something else");
    for (const name of names) {
      await deploy(name, { sourceRef: { apiVersion: `${group}/v1`, kind: "GitRepository", name } });
    }
    await waitForMessage("missing", "the artifact does not exist (HTTP 404)");
    await stalledBy(scene, "forged", { reason: "WorkspaceFailed", message: "the artifact's digest differs" });
    for (const name of names) await refresh("gitrepository", name);
    for (const name of names) await stackUntil(scene, name, hasText(name));
  },
  slow,
);

test.concurrent(
  "an ExternalArtifact of another controller is a source like those of Flux",
  async () => {
    const repository = scene.git.create("handed-on");
    const commit = repository.commit(yamlProject("handed on"));
    repository.commit(yamlProject("something later"));
    await applyTo(scene, gitRepository("handed-on", { commit }));
    const source = ["gitrepository/handed-on", ...at(scene)];
    await kubectl(["wait", ...source, "--for=condition=Ready", "--timeout=120s"]);
    const artifact = JSON.parse(await kubectl(["get", ...source, "--output=jsonpath={.status.artifact}"])) as object;
    await applyTo(scene, {
      apiVersion: `${group}/v1`,
      kind: "ExternalArtifact",
      metadata: { name: "external" },
      spec: {},
    });
    const sourceRef = { apiVersion: `${group}/v1`, kind: "ExternalArtifact", name: "external" };
    await deploy("external", { sourceRef });
    await stalledBy(scene, "external", { message: "ExternalArtifact external has no artifact yet" });
    const lastTransitionTime = new Date().toISOString();
    const ready = {
      type: "Ready",
      status: "True",
      reason: "Succeeded",
      message: "stored artifact",
      lastTransitionTime,
    };
    const patch = JSON.stringify({ status: { artifact, conditions: [ready] } });
    const target = ["externalartifact", "external", ...at(scene)];
    await kubectl(["patch", ...target, "--subresource=status", "--type=merge", `--patch=${patch}`]);
    await stackUntil(scene, "external", hasText("handed on"));
  },
  slow,
);

function gitRepository(name: string, ref: object): object {
  const spec = { interval: "1h", url: scene.git.url(name), ref };
  return { apiVersion: `${group}/v1`, kind: "GitRepository", metadata: { name }, spec };
}

/** The file in which the controller stores the current artifact of a GitRepository. */
function artifactFile(name: string): string {
  const folder = join(flux.storage, "gitrepository", scene.namespace, name);
  const file = readdirSync(folder).find((each) => each.endsWith(".tar.gz") && !each.startsWith("latest")) ?? "";
  return join(folder, file);
}

async function deploy(name: string, fluxSource: object): Promise<void> {
  await applyTo(scene, newStack(name, { fluxSource }));
}

/** Makes Flux reconcile the source now instead of after its interval. */
async function refresh(kind: string, name: string): Promise<void> {
  const annotation = `reconcile.fluxcd.io/requestedAt=${crypto.randomUUID()}`;
  await kubectl(["annotate", kind, name, ...at(scene), "--overwrite", annotation]);
}

const hasText =
  (text: string) =>
  (stack: Stack): boolean =>
    isReady(stack) && stack.status?.outputs?.["text"] === text;

/** In any condition, because a Stack is not stalled while it retries. */
async function waitForMessage(name: string, text: string): Promise<void> {
  const isReported = async (): Promise<boolean> =>
    JSON.stringify((await getStack(scene, name)).status?.conditions ?? []).includes(text);
  await waitFor(isReported, { timeoutMs: 240_000, what: `Stack ${name} to report: ${text}` });
}
