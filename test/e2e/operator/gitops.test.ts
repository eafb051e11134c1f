/** The main workflows of the docs on a real cluster with real Pulumi: deploy, follow, destroy. */
import { describe, expect, test } from "bun:test";

import {
  applyTo,
  at,
  deleteStack,
  fromSecret,
  isAt,
  isReady,
  kubectl,
  listUpdates,
  newProgram,
  newSecret,
  newStack,
  podUid,
  reconcileAndWait,
  requestReconcile,
  stackUntil,
  untilEvents,
  useScene,
  yamlProject,
} from "../harness.ts";

const slow = 300_000;
const scene = useScene("gitops");

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
    "reports the error of a broken program, follows its branch in the same pod, and runs one update for each reconcile request",
    async () => {
      const repository = scene.git.create("followed");
      repository.commit(yamlProject("${nothing.here}"));
      await applyTo(scene, newStack("followed", { ...scene.git.source("followed"), resyncFrequencySeconds: 10 }));
      const failed = await stackUntil(scene, "followed", ({ status }) => status?.lastUpdate?.state === "failed");
      expect(JSON.stringify(failed.status?.conditions)).toContain("nothing");
      expect(failed.status?.lastUpdate?.failures).toBeGreaterThan(0);
      const pod = await podUid(scene, "followed");

      for (const text of ["fixed", "next"]) {
        const commit = repository.commit(yamlProject(text));
        const { status } = await stackUntil(scene, "followed", isAt(commit));
        expect(status?.outputs).toEqual({ text });
      }
      expect(await podUid(scene, "followed")).toBe(pod);

      const before = await listUpdates(scene, "followed");
      await reconcileAndWait(scene, "followed", "first");
      await requestReconcile(scene, "followed", "first");
      await reconcileAndWait(scene, "followed", "second");
      expect(await listUpdates(scene, "followed")).toHaveLength(before.length + 2);
    },
    slow,
  );
});
