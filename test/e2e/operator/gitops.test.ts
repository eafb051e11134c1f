/** The main workflows of the docs on a real cluster with real Pulumi: deploy, follow, preview, destroy. */
import { describe, expect, test } from "bun:test";

import {
  applyTo,
  at,
  deleteStack,
  fromSecret,
  isReady,
  kubectl,
  listUpdates,
  newProgram,
  newSecret,
  newStack,
  podUid,
  requestReconcile,
  stackUntil,
  untilEvents,
  useScene,
  yamlProject,
} from "../harness.ts";

const slow = 300_000;
const scene = useScene("gitops");

const fromGit = (name: string, spec: object = {}): object => newStack(name, { ...scene.git.source(name), ...spec });

describe("the operator on a cluster", () => {
  test.concurrent(
    "deploys a Program with configuration and secrets, applies a change in the same pod, and destroys it on deletion",
    async () => {
      const program = (suffix: string): object =>
        newProgram("greeting", {
          configuration: { who: { type: "string" }, password: { type: "string", secret: true } },
          resources: { kept: { type: "pulumi:index:Stash", properties: { input: "${password}" } } },
          outputs: { greeting: `hello \${who}${suffix}`, password: "${kept.output}" },
        });
      const canary = "canary-secret-value";
      await applyTo(
        scene,
        newSecret("inputs", { password: canary }),
        program(""),
        newStack("greeting", {
          programRef: { name: "greeting" },
          config: { who: "world" },
          secretsRef: { password: fromSecret("inputs", "password") },
          destroyOnFinalize: true,
        }),
      );
      const deployed = await stackUntil(scene, "greeting", isReady);
      expect(deployed.status?.outputs).toEqual({ greeting: "hello world", password: "[secret]" });
      expect(deployed.status?.lastUpdate).toMatchObject({ state: "succeeded", type: "up" });
      const pod = await podUid(scene, "greeting");

      await applyTo(scene, program(" and all"));
      await stackUntil(scene, "greeting", ({ status }) => status?.outputs?.["greeting"] === "hello world and all");
      expect(await podUid(scene, "greeting")).toBe(pod);
      expect(await listUpdates(scene, "greeting")).toHaveLength(2);

      await deleteStack(scene, "greeting");
      await untilEvents(scene, "greeting", "StackDestroyed");
      expect(await kubectl(["get", "events", ...at(scene), "--output=json"])).not.toContain(canary);
      expect(JSON.stringify(deployed)).not.toContain(canary);
      expect(await scene.operator.log()).not.toContain(canary);
    },
    slow,
  );

  test.concurrent(
    "follows a branch and applies a new commit in the same pod",
    async () => {
      const repository = scene.git.create("followed");
      const first = repository.commit(yamlProject("one"));
      await applyTo(scene, fromGit("followed", { resyncFrequencySeconds: 10 }));
      const deployed = await stackUntil(scene, "followed", isReady);
      expect(deployed.status?.lastUpdate?.lastSuccessfulCommit).toBe(first);
      expect(deployed.status?.outputs).toEqual({ text: "one" });
      const pod = await podUid(scene, "followed");

      const second = repository.commit(yamlProject("two"));
      const followed = await stackUntil(
        scene,
        "followed",
        ({ status }) => status?.lastUpdate?.lastSuccessfulCommit === second,
      );
      expect(followed.status?.outputs).toEqual({ text: "two" });
      expect(await podUid(scene, "followed")).toBe(pod);
    },
    slow,
  );

  test.concurrent(
    "runs one update for each new value of the reconcile request, and no other",
    async () => {
      scene.git.create("requested").commit(yamlProject("one"));
      await applyTo(scene, fromGit("requested"));
      await stackUntil(scene, "requested", isReady);
      const before = await listUpdates(scene, "requested");
      await requestReconcile(scene, "requested", "first");
      await waitForRequest("requested", "first");
      await requestReconcile(scene, "requested", "first");
      await requestReconcile(scene, "requested", "second");
      await waitForRequest("requested", "second");
      expect(await listUpdates(scene, "requested")).toHaveLength(before.length + 2);
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
    "reports the error of a broken program, and recovers when the program is fixed",
    async () => {
      const repository = scene.git.create("broken");
      repository.commit(yamlProject("${nothing.here}"));
      await applyTo(scene, fromGit("broken"));
      const failed = await stackUntil(scene, "broken", ({ status }) => status?.lastUpdate?.state === "failed");
      expect(JSON.stringify(failed.status?.conditions)).toContain("nothing");
      expect(failed.status?.lastUpdate?.failures).toBeGreaterThan(0);

      repository.commit(yamlProject("fixed"));
      const fixed = await stackUntil(scene, "broken", isReady);
      expect(fixed.status?.outputs).toEqual({ text: "fixed" });
    },
    slow,
  );
});

async function waitForRequest(name: string, request: string): Promise<void> {
  await stackUntil(scene, name, (stack) => isReady(stack) && stack.status?.observedReconcileRequest === request);
}
