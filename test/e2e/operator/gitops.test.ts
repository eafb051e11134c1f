/** The documents' main stories, on a real cluster with real Pulumi: deploy, follow, preview, destroy. */
import { describe, expect, test } from "bun:test";

import {
  applyTo,
  at,
  deleteStack,
  fromSecret,
  isReady,
  kubectl,
  podOf,
  programOf,
  reconcile,
  secretOf,
  stackOf,
  stackUntil,
  updatesOf,
  useScene,
} from "../harness.ts";
import { yamlProject } from "./programs.ts";

const slow = 300_000;
const scene = useScene("gitops");

const fromGit = (name: string, spec: object = {}): object =>
  stackOf(name, { projectRepo: scene.git.url(name), branch: "main", ...spec });

describe("the operator on a cluster", () => {
  test.concurrent(
    "deploys a Program with configuration and secrets, follows it in the same pod, and destroys it",
    async () => {
      const program = (suffix: string): object =>
        programOf("greeting", {
          configuration: { who: { type: "string" }, password: { type: "string", secret: true } },
          resources: { kept: { type: "pulumi:index:Stash", properties: { input: "${password}" } } },
          outputs: { greeting: `hello \${who}${suffix}`, password: "${kept.output}" },
        });
      const canary = "canary-secret-value";
      await applyTo(
        scene,
        secretOf("inputs", { password: canary }),
        program(""),
        stackOf("greeting", {
          programRef: { name: "greeting" },
          config: { who: "world" },
          secretsRef: { password: fromSecret("inputs", "password") },
          destroyOnFinalize: true,
        }),
      );
      const deployed = await stackUntil(scene, "greeting", isReady);
      expect(deployed.status?.outputs).toEqual({ greeting: "hello world", password: "[secret]" });
      expect(deployed.status?.lastUpdate).toMatchObject({ state: "succeeded", type: "up" });
      const pod = await podOf(scene, "greeting");

      await applyTo(scene, program(" again"));
      await stackUntil(scene, "greeting", ({ status }) => status?.outputs?.["greeting"] === "hello world again");
      expect(await podOf(scene, "greeting")).toBe(pod);
      expect(await updatesOf(scene, "greeting")).toHaveLength(2);

      await deleteStack(scene, "greeting");
      const events = await kubectl(["get", "events", ...at(scene), "--output=json"]);
      expect(events).toContain("StackDestroyed");
      expect(events).not.toContain(canary);
      expect(JSON.stringify(deployed)).not.toContain(canary);
      expect(await scene.operator.log()).not.toContain(canary);
    },
    slow,
  );

  test.concurrent(
    "follows a branch of a Git repository: a new commit is applied in the same pod",
    async () => {
      const repository = scene.git.create("followed");
      const first = repository.commit(yamlProject("one"));
      await applyTo(scene, fromGit("followed", { resyncFrequencySeconds: 60 }));
      const deployed = await stackUntil(scene, "followed", isReady);
      expect(deployed.status?.lastUpdate?.lastSuccessfulCommit).toBe(first);
      expect(deployed.status?.outputs).toEqual({ text: "one" });
      const pod = await podOf(scene, "followed");

      const second = repository.commit(yamlProject("two"));
      const followed = await stackUntil(
        scene,
        "followed",
        ({ status }) => status?.lastUpdate?.lastSuccessfulCommit === second,
      );
      expect(followed.status?.outputs).toEqual({ text: "two" });
      expect(await podOf(scene, "followed")).toBe(pod);
    },
    slow,
  );

  test.concurrent(
    "runs one update for each new value of the reconcile request, and none besides",
    async () => {
      scene.git.create("asked").commit(yamlProject("one"));
      await applyTo(scene, fromGit("asked"));
      await stackUntil(scene, "asked", isReady);
      const before = await updatesOf(scene, "asked");
      await reconcile(scene, "asked", "first");
      await observed("asked", "first");
      await reconcile(scene, "asked", "first");
      await reconcile(scene, "asked", "second");
      await observed("asked", "second");
      expect(await updatesOf(scene, "asked")).toHaveLength(before.length + 2);
    },
    slow,
  );

  test.concurrent(
    "previews a feature branch without changing anything",
    async () => {
      scene.git.create("previewed").commit(yamlProject("one", "kept"), "feature/add-cache");
      await applyTo(scene, fromGit("previewed", { branch: "feature/add-cache", preview: true }));
      const previewed = await stackUntil(scene, "previewed", isReady);
      expect(previewed.status?.lastUpdate).toMatchObject({
        state: "succeeded",
        type: "preview",
        changes: { create: 2 },
      });
      expect(previewed.status?.lastUpdate?.stdout?.text).toContain("pulumi:index:Stash");
    },
    slow,
  );

  test.concurrent(
    "tells a broken program's own error, and recovers when it is mended",
    async () => {
      const repository = scene.git.create("broken");
      repository.commit(yamlProject("${nothing.here}"));
      await applyTo(scene, fromGit("broken"));
      const failed = await stackUntil(scene, "broken", ({ status }) => status?.lastUpdate?.state === "failed");
      expect(JSON.stringify(failed.status?.conditions)).toContain("nothing");
      expect(failed.status?.lastUpdate?.failures).toBeGreaterThan(0);

      repository.commit(yamlProject("mended"));
      const mended = await stackUntil(scene, "broken", isReady);
      expect(mended.status?.outputs).toEqual({ text: "mended" });
    },
    slow,
  );
});

async function observed(name: string, request: string): Promise<void> {
  await stackUntil(scene, name, (stack) => isReady(stack) && stack.status?.observedReconcileRequest === request);
}
