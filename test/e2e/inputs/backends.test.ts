/** State in a bucket: access keys from a Secret, secrets providers, and locks. */
import { beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

import type { Stack } from "@pko/api";
import { waitFor } from "@pko/testkit";

import {
  applyTo,
  fromSecret,
  isReady,
  javascriptProject,
  killPod,
  listUpdates,
  literal,
  machineAddress,
  newProgram,
  newSecret,
  newStackWithoutBackend,
  readOutput,
  readyMessage,
  requestReconcile,
  stackUntil,
  stalledReason,
  useScene,
} from "../harness.ts";
import { serveS3, type S3Server } from "./s3-server.ts";

const slow = 420_000;
const scene = useScene("backends");
let s3: S3Server;

beforeAll(async () => {
  s3 = await serveS3("states");
  scene.defer(() => s3.stop());
  const kept = newProgram("kept", {
    configuration: { password: { type: "string", secret: true } },
    resources: { kept: { type: "pulumi:index:Stash", properties: { input: "${password}" } } },
    outputs: { password: "${kept.output}" },
  });
  await applyTo(scene, keys("aws", s3.secretAccessKey), keys("aws-mistyped", "canary-of-nothing"), kept);
}, slow);

const keys = (name: string, secretAccessKey: string): object =>
  newSecret(name, { accessKeyId: s3.accessKeyId, secretAccessKey, passphrase: "canary-passphrase" });

interface BucketStack {
  /** The Secret with the access keys. */
  readonly secret?: string;
  readonly env?: object;
  readonly [field: string]: unknown;
}

/** As in docs/backends.md. */
function onBucket(name: string, { secret = "aws", env = {}, ...spec }: BucketStack): object {
  return newStackWithoutBackend(name, {
    stack: name,
    backend: s3.backendUrl("states"),
    envRefs: {
      AWS_ACCESS_KEY_ID: fromSecret(secret, "accessKeyId"),
      AWS_SECRET_ACCESS_KEY: fromSecret(secret, "secretAccessKey"),
      PULUMI_CONFIG_PASSPHRASE: fromSecret(secret, "passphrase"),
      ...env,
    },
    ...spec,
  });
}

/** Has one slow resource. */
const slowProject = javascriptProject(
  "slow",
  `
const pulumi = require("@pulumi/pulumi");

const provider = {
  async create() {
    await new Promise((resolve) => setTimeout(resolve, 30_000));
    return { id: "done", outs: {} };
  },
};

class Slow extends pulumi.dynamic.Resource {
  constructor(name) {
    super(provider, name, {});
  }
}

exports.id = new Slow("slow").id;
`,
);

const locksOf = (stack: string): string[] => s3.locks("states").filter((path) => path.includes(`/${stack}/`));

/** Writes a lock of a process in a pod of the same name in another cluster. */
function writeForeignLock(stack: string): string {
  const path = s3.path("states", `.pulumi/locks/organization/slow/${stack}/6a1f0d5e-0000-4000-8000-000000000000.json`);
  const holder = { pid: 7, username: "pulumi", hostname: `${stack}-workspace-0`, timestamp: "2026-01-01T00:00:00Z" };
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify(holder));
  return path;
}

describe("a bucket as the backend", () => {
  test.concurrent(
    "is unlocked after a run that was killed with its pod, but keeps other locks",
    async () => {
      scene.git.create("slow").commit(slowProject);
      await applyTo(scene, onBucket("stored", scene.git.source("slow")));
      // The operator removes only locks of recorded processes.
      const isConfirmed = async () => (await listUpdates(scene, "stored")).some(({ status }) => status?.process);
      await waitFor(isConfirmed, { timeoutMs: 240_000, what: "the process of the first update to be recorded" });
      expect(locksOf("stored")).toHaveLength(1);
      await killPod(scene, "stored");
      const stored = await stackUntil(scene, "stored", isReady);
      expect(stored.status?.outputs).toEqual({ id: "done" });
      const [first, ...others] = await listUpdates(scene, "stored");
      const failed = first?.status?.conditions?.find(({ type }) => type === "Failed");
      expect(failed).toMatchObject({ status: "True", reason: "Aborted" });
      expect(others.length).toBeGreaterThan(0);
      expect(locksOf("stored")).toEqual([]);

      const lock = writeForeignLock("stored");
      await requestReconcile(scene, "stored", "while-locked");
      const conflict = (stack: Stack): boolean => stalledReason(stack) === "UpdateConflict";
      expect(readyMessage(await stackUntil(scene, "stored", conflict))).toContain("stored-workspace-0 (pid 7)");
      expect(locksOf("stored")).toHaveLength(1);
      rmSync(lock);
      await requestReconcile(scene, "stored", "released");
      await stackUntil(scene, "stored", isReady);
    },
    slow,
  );

  test.concurrent(
    "reports rejected access keys, and works once the Secret is corrected",
    async () => {
      await applyTo(scene, onBucket("refused", { secret: "aws-mistyped", ...program }));
      const refused = await stackUntil(scene, "refused", isStalled);
      expect(readyMessage(refused)).toContain("SignatureDoesNotMatch");
      expect(JSON.stringify(refused)).not.toContain("canary");
      await applyTo(scene, keys("aws-mistyped", s3.secretAccessKey));
      await stackUntil(scene, "refused", isReady);
      expect(await readOutput(scene, "refused", "password")).toBe("canary-passphrase");
    },
    slow,
  );

  test.concurrent(
    "is encrypted by the secretsProvider, and an unreachable or different provider is reported",
    async () => {
      const key = "awskms://alias/pulumi?region=us-east-1";
      const closed = literal(`http://${machineAddress}:9`);
      const sealed = (secretsProvider: string): object =>
        onBucket("sealed", {
          env: { AWS_ENDPOINT_URL_KMS: closed },
          ...program,
          secretsProvider,
          destroyOnFinalize: true,
        });
      await applyTo(scene, sealed(key));
      const message = readyMessage(await stackUntil(scene, "sealed", isStalled));
      expect(message).toContain("could not create secrets manager for new stack");
      expect(message).toContain("KMS: Encrypt");

      await applyTo(scene, sealed("passphrase"));
      expect(readyMessage(await stackUntil(scene, "sealed", isReady))).not.toContain("Warning:");
      const state = readFileSync(s3.path("states", ".pulumi/stacks/kept/sealed.json"), "utf8");
      expect(JSON.parse(state)).toMatchObject({
        checkpoint: { latest: { secrets_providers: { type: "passphrase" } } },
      });
      expect(state).toContain("pulumi:index:Stash");
      expect(state).not.toContain("canary");

      await applyTo(scene, sealed(key));
      const warned = await stackUntil(
        scene,
        "sealed",
        (stack) => isReady(stack) && readyMessage(stack).includes("Warning:"),
      );
      expect(readyMessage(warned)).toContain("the stack's secrets are encrypted by a passphrase, not by");
      expect(readyMessage(warned)).toContain(`pulumi stack change-secrets-provider "${key}"`);
    },
    slow,
  );
});

const program = {
  programRef: { name: "kept" },
  secretsRef: { password: fromSecret("aws", "passphrase") },
};

const isStalled = (stack: Stack): boolean => stalledReason(stack) === "WorkspaceFailed";
