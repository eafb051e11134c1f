/** The documents' main stories, on a real cluster with real Pulumi: deploy, follow, preview, destroy. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createRepository, serveGit, type GitServer } from "@pko/agent/testing";
import { network } from "@pko/cluster";

import {
  apply,
  isReady,
  kubectl,
  newNamespace,
  onFileBackend,
  removeNamespace,
  stackUntil,
  startOperator,
  updatesOf,
  type Operator,
  type Place,
} from "../harness.ts";

const slow = 180_000;

let operator: Operator;
let place: Place;
let git: GitServer;
const repositories = mkdtempSync(join(tmpdir(), "pko-git-"));

const stackOf = (name: string, spec: object): object => ({
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  metadata: { name, namespace: place.namespace },
  spec: { ...onFileBackend, stack: name, ...spec },
});

/** A Pulumi YAML project whose only output is the text. */
const project = (text: string): Record<string, string> => ({
  "Pulumi.yaml": `name: followed\nruntime: yaml\noutputs:\n  text: ${text}\n`,
});

describe("the operator on a cluster", () => {
  beforeAll(async () => {
    const namespace = await newNamespace("gitops");
    operator = await startOperator([namespace]);
    place = { client: operator.client, namespace };
    git = serveGit(repositories, { hostname: network.machine });
  }, slow);

  afterAll(async () => {
    await removeNamespace(place.namespace);
    await git.stop();
    await operator.stop();
  });

  test(
    "deploys a Program with configuration and secrets, follows it in the same pod, and destroys it",
    async () => {
      const program = (suffix: string): object => ({
        apiVersion: "pulumi.com/v1",
        kind: "Program",
        metadata: { name: "greeting", namespace: place.namespace },
        program: {
          configuration: { who: { type: "string" }, password: { type: "string", secret: true } },
          resources: { kept: { type: "pulumi:index:Stash", properties: { input: "${password}" } } },
          outputs: { greeting: `hello \${who}${suffix}`, password: "${kept.output}" },
        },
      });
      const canary = "canary-secret-value";
      await apply(
        {
          apiVersion: "v1",
          kind: "Secret",
          metadata: { name: "inputs", namespace: place.namespace },
          stringData: { password: canary },
        },
        program(""),
        stackOf("greeting", {
          programRef: { name: "greeting" },
          config: { who: "world" },
          secretsRef: { password: { type: "Secret", secret: { name: "inputs", key: "password" } } },
          destroyOnFinalize: true,
        }),
      );
      const deployed = await stackUntil(place, "greeting", isReady);
      expect(deployed.status?.outputs).toEqual({ greeting: "hello world", password: "[secret]" });
      expect(deployed.status?.lastUpdate).toMatchObject({ state: "succeeded", type: "up" });
      const pod = await podOf("greeting");

      await apply(program(" again"));
      await stackUntil(place, "greeting", ({ status }) => status?.outputs?.["greeting"] === "hello world again");
      expect(await podOf("greeting")).toBe(pod);
      expect(await updatesOf(place, "greeting")).toHaveLength(2);

      await kubectl(["delete", "stack", "greeting", "-n", place.namespace, "--timeout=60s"]);
      const events = await kubectl(["get", "events", "-n", place.namespace, "--output=json"]);
      expect(events).toContain("StackDestroyed");
      expect(events).not.toContain(canary);
      expect(JSON.stringify(deployed)).not.toContain(canary);
      expect(await operator.log()).not.toContain(canary);
    },
    slow,
  );

  test(
    "follows a branch of a Git repository: a new commit is applied in the same pod",
    async () => {
      const repository = createRepository(repositories, "followed");
      const first = repository.commit(project("one"));
      await apply(
        stackOf("followed", {
          projectRepo: `http://${network.machine}:${git.port}/followed.git`,
          branch: "main",
          resyncFrequencySeconds: 60,
        }),
      );
      const deployed = await stackUntil(place, "followed", isReady);
      expect(deployed.status?.lastUpdate?.lastSuccessfulCommit).toBe(first);
      expect(deployed.status?.outputs).toEqual({ text: "one" });
      const pod = await podOf("followed");

      const second = repository.commit(project("two"));
      const followed = await stackUntil(
        place,
        "followed",
        ({ status }) => status?.lastUpdate?.lastSuccessfulCommit === second,
      );
      expect(followed.status?.outputs).toEqual({ text: "two" });
      expect(await podOf("followed")).toBe(pod);
    },
    slow,
  );

  test(
    "runs one update for each new value of the reconcile request, and none besides",
    async () => {
      const before = await updatesOf(place, "followed");
      const request = (value: string): Promise<string> =>
        kubectl([
          "annotate",
          "stack",
          "followed",
          "-n",
          place.namespace,
          "--overwrite",
          `pulumi.com/reconciliation-request=${value}`,
        ]);
      await request("first");
      await stackUntil(
        place,
        "followed",
        (stack) => isReady(stack) && stack.status?.observedReconcileRequest === "first",
      );
      await request("first");
      await request("second");
      await stackUntil(
        place,
        "followed",
        (stack) => isReady(stack) && stack.status?.observedReconcileRequest === "second",
      );
      expect(await updatesOf(place, "followed")).toHaveLength(before.length + 2);
    },
    slow,
  );

  test(
    "previews a feature branch without changing anything",
    async () => {
      const repository = createRepository(repositories, "previewed");
      repository.commit(
        {
          "Pulumi.yaml":
            "name: previewed\nruntime: yaml\nresources:\n  kept:\n    type: pulumi:index:Stash\n    properties:\n      input: x\n",
        },
        "feature/add-cache",
      );
      await apply(
        stackOf("previewed", {
          projectRepo: `http://${network.machine}:${git.port}/previewed.git`,
          branch: "feature/add-cache",
          preview: true,
        }),
      );
      const previewed = await stackUntil(place, "previewed", isReady);
      expect(previewed.status?.lastUpdate).toMatchObject({
        state: "succeeded",
        type: "preview",
        changes: { create: 2 },
      });
      expect(previewed.status?.lastUpdate?.stdout?.text).toContain("pulumi:index:Stash");
    },
    slow,
  );

  test(
    "tells a broken program's own error, and recovers when it is mended",
    async () => {
      const repository = createRepository(repositories, "broken");
      repository.commit({ "Pulumi.yaml": "name: broken\nruntime: yaml\noutputs:\n  text: ${nothing.here}\n" });
      await apply(
        stackOf("broken", { projectRepo: `http://${network.machine}:${git.port}/broken.git`, branch: "main" }),
      );
      const failed = await stackUntil(place, "broken", ({ status }) => status?.lastUpdate?.state === "failed");
      expect(JSON.stringify(failed.status?.conditions)).toContain("nothing");
      expect(failed.status?.lastUpdate?.failures).toBeGreaterThan(0);

      repository.commit(project("mended"));
      const mended = await stackUntil(place, "broken", isReady);
      expect(mended.status?.outputs).toEqual({ text: "mended" });
    },
    slow,
  );
});

async function podOf(stack: string): Promise<string> {
  const pod = `${stack}-workspace-0`;
  return await kubectl(["get", "pod", pod, "-n", place.namespace, "--output=jsonpath={.metadata.uid}"]);
}
