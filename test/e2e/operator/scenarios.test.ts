/** The GitOps workflows of the docs: pinned commits, tags, promotion, previews, drift correction and destroy. */
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";

import type { Update } from "@pko/api";
import { waitFor } from "@pko/testkit";

import {
  applyTo,
  at,
  deleteStack,
  execInPod,
  filesProject,
  getStack,
  hasReason,
  isAt,
  isReady,
  kubectl,
  listUpdates,
  newStack,
  reconcileAndWait,
  requestReconcile,
  stackUntil,
  startStatePod,
  useScene,
  yamlProject,
  type Place,
} from "../harness.ts";

const slow = 600_000;
const scene = useScene("scenarios");

describe("releases", () => {
  test.concurrent(
    "a pinned commit stays deployed when branches move, another one is promoted, and a tag is followed, in both spellings",
    async () => {
      const repository = scene.git.create("released");
      const first = repository.commit(yamlProject("one"));
      await deploy(scene, "released", { commit: first });
      const deployed = await stackUntil(scene, "released", isReady);
      expect(deployed.status?.outputs).toEqual({ text: "one" });

      const second = repository.commit(yamlProject("two"));
      const unchanged = await reconcileAndWait(scene, "released", "main has moved");
      expect(unchanged.status?.lastUpdate?.lastSuccessfulCommit).toBe(first);

      await deploy(scene, "released", { commit: second });
      const promoted = await stackUntil(scene, "released", isAt(second));
      expect(promoted.status?.outputs).toEqual({ text: "two" });

      repository.git("tag", "v1", first);
      await deploy(scene, "released", { branch: "refs/tags/v1" });
      await stackUntil(scene, "released", isAt(first));
      repository.git("tag", "--force", "v1", second);
      await reconcileAndWait(scene, "released", "moved");
      await stackUntil(scene, "released", isAt(second));

      repository.git("tag", "v2", first);
      await deploy(scene, "released", { tag: "v2" });
      const back = await stackUntil(scene, "released", isAt(first));
      expect(back.status?.outputs).toEqual({ text: "one" });
    },
    slow,
  );

  test.concurrent(
    "production follows its release branch and not main, and a preview of a feature branch changes neither",
    async () => {
      const repository = scene.git.create("webapp");
      const first = repository.commit(yamlProject("one", "page"));
      repository.git("branch", "release", first);
      await deploy(scene, "production", { branch: "release", repository: "webapp" });
      await stackUntil(scene, "production", isAt(first));

      const second = repository.commit(yamlProject("two", "page"));
      await reconcileAndWait(scene, "production", "main has moved");
      expect((await getStack(scene, "production")).status?.lastUpdate?.lastSuccessfulCommit).toBe(first);
      repository.git("branch", "--force", "release", second);
      await reconcileAndWait(scene, "production", "released");
      const live = await stackUntil(scene, "production", isAt(second));
      expect(live.status?.outputs).toEqual({ text: "two" });

      // A preview of the Pulumi stack that is in production.
      repository.commit(yamlProject("three", "page", "cache"), "feature/add-cache");
      const feature = { branch: "feature/add-cache", repository: "webapp", stack: "production" };
      await deploy(scene, "webapp-preview", { ...feature, preview: true, destroyOnFinalize: true });
      const previewed = await stackUntil(scene, "webapp-preview", isReady);
      expect(previewed.status).toMatchObject({
        deployed: false,
        lastUpdate: { state: "succeeded", type: "preview", changes: { create: 1, same: 2 } },
      });
      expect(previewed.status?.lastUpdate?.stdout?.text).toContain("pulumi:index:Stash");
      expect(previewed.status?.outputs).toEqual({ text: "three" });
      await deleteStack(scene, "webapp-preview");
      const types = (await listUpdates(scene, "webapp-preview")).map(({ spec }) => spec?.type);
      expect(types).not.toContain("destroy");
      const after = await reconcileAndWait(scene, "production", "after the preview");
      expect(after.status?.lastUpdate).toMatchObject({ state: "succeeded", changes: { same: 2 } });
    },
    slow,
  );
});

test.concurrent(
  "a resync corrects drift",
  async () => {
    scene.git.create("drifting").commit(filesProject('new File("page", "as it should be");'));
    await deploy(scene, "drifting", {
      branch: "main",
      refresh: true,
      continueResyncOnCommitMatch: true,
      resyncFrequencySeconds: 10,
    });
    await stackUntil(scene, "drifting", isReady);
    expect(await execInPod(scene, "drifting", "cat /state/page; echo -n changed by hand > /state/page")).toBe(
      "as it should be",
    );
    const isCorrected = ({ status }: Update): boolean => status?.changes?.["update"] === 1;
    await waitFor(async () => (await listUpdates(scene, "drifting")).some(isCorrected), {
      timeoutMs: 300_000,
      what: "the Update that corrects the file",
    });
    expect(await execInPod(scene, "drifting", "cat /state/page")).toBe("as it should be");
    await stackUntil(scene, "drifting", ({ status }) => status?.next?.what === "the periodic resync");
    // Its resyncs would take CPU time until the end of the file.
    await deleteStack(scene, "drifting");
  },
  slow,
);

test.concurrent(
  "a deleted Stack is destroyed, even after a failed update and without its source",
  async () => {
    const repository = scene.git.create("leaving");
    repository.commit(filesProject('new File("first", "x");'));
    await deploy(scene, "leaving", { branch: "main", destroyOnFinalize: true });
    await stackUntil(scene, "leaving", isReady);
    const broken = 'const second = new File("second", "y");\nnew File("third", "broken", { dependsOn: second });';
    const commit = repository.commit(filesProject(`new File("first", "x");\n${broken}`));
    await requestReconcile(scene, "leaving", "broken");
    const failed = await stackUntil(
      scene,
      "leaving",
      ({ status }) => status?.lastUpdate?.lastAttemptedCommit === commit && status.lastUpdate.state === "failed",
    );
    expect(JSON.stringify(failed.status?.conditions)).toContain("the disk is on fire");
    expect(await execInPod(scene, "leaving", "cd /state; ls first second third 2>/dev/null || true")).toBe(
      "first\nsecond\n",
    );
    rmSync(repository.folder, { recursive: true });
    await requestReconcile(scene, "leaving", "without its source");
    await stackUntil(scene, "leaving", hasReason("SourceUnavailable"));
    await deleteStack(scene, "leaving");
    await startStatePod(scene, { name: "witness", command: ["sleep", "1000000"] });
    const inState = (command: string): Promise<string> =>
      kubectl(["exec", "witness", ...at(scene), "--", "sh", "-c", `cd /state; ${command} 2>&1 || true`]);
    const stateFile = ".pulumi/stacks/files/leaving.json";
    expect(await inState("ls")).not.toMatch(/first|second|third/);
    // The empty Pulumi stack is kept, and a Stack of the same name uses it again.
    expect(await inState(`cat ${stateFile}`)).not.toContain('"urn"');
    scene.git.create("returning").commit(filesProject('new File("first", "x");'));
    const spec = {
      repository: "returning",
      branch: "main",
      destroyOnFinalize: true,
      updateTemplate: { spec: { remove: true } },
    };
    await deploy(scene, "leaving", spec);
    await stackUntil(scene, "leaving", isReady);
    expect(await inState(`cat ${stateFile}`)).toContain('"urn"');
    await deleteStack(scene, "leaving");
    // The update template requests the removal.
    expect(await inState(`cat ${stateFile}`)).toContain("No such file");
  },
  slow,
);

interface StackFields {
  /** The name of the Stack by default. */
  readonly repository?: string;
  readonly [field: string]: unknown;
}

async function deploy(place: Place, name: string, { repository = name, ...spec }: StackFields): Promise<void> {
  await applyTo(place, newStack(name, { projectRepo: scene.git.url(repository), ...spec }));
}
