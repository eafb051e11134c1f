/** The documents' stories of GitOps: what is pinned, tagged, promoted, previewed, corrected and destroyed. */
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";

import { stacks } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import {
  applyTo,
  deleteStack,
  getStack,
  hasReason,
  inPod,
  isAt,
  isReady,
  kubectl,
  reconcile,
  removeNamespace,
  requested,
  stackOf,
  stackUntil,
  updatesOf,
  useScene,
  type Place,
} from "../harness.ts";
import { filesProject, yamlProject } from "./programs.ts";

const slow = 600_000;
const scene = useScene("scenarios", {
  beside: "ending",
  operator: { forbidden: [/because it is being terminated/] },
});

describe("releases", () => {
  test.concurrent(
    "a pinned commit stays deployed whatever the branches do; promotion is another commit",
    async () => {
      const repository = scene.git.create("pinned");
      const first = repository.commit(yamlProject("one"));
      await deploy(scene, "pinned", { commit: first });
      const deployed = await stackUntil(scene, "pinned", isReady);
      expect(deployed.status?.outputs).toEqual({ text: "one" });

      const second = repository.commit(yamlProject("two"));
      const asked = await requested(scene, "pinned", "look");
      expect(asked.status?.lastUpdate?.lastSuccessfulCommit).toBe(first);

      await deploy(scene, "pinned", { commit: second });
      const promoted = await stackUntil(scene, "pinned", isAt(second));
      expect(promoted.status?.outputs).toEqual({ text: "two" });
    },
    slow,
  );

  test.concurrent(
    "a tag is followed where it goes, in both of its spellings",
    async () => {
      const repository = scene.git.create("tagged");
      const first = repository.commit(yamlProject("one"));
      repository.git("tag", "v1", first);
      await deploy(scene, "tagged", { branch: "refs/tags/v1" });
      await stackUntil(scene, "tagged", isAt(first));

      const second = repository.commit(yamlProject("two"));
      repository.git("tag", "--force", "v1", second);
      await requested(scene, "tagged", "moved");
      await stackUntil(scene, "tagged", isAt(second));

      repository.git("tag", "v2", first);
      await deploy(scene, "tagged", { tag: "v2" });
      const back = await stackUntil(scene, "tagged", isAt(first));
      expect(back.status?.outputs).toEqual({ text: "one" });
    },
    slow,
  );

  test.concurrent(
    "promotion by release branch: production moves with the branch, not with main; a preview of a feature changes neither",
    async () => {
      const repository = scene.git.create("webapp");
      const first = repository.commit(yamlProject("one", "page"));
      repository.git("branch", "release", first);
      await deploy(scene, "production", { branch: "release", repository: "webapp" });
      await stackUntil(scene, "production", isAt(first));

      const second = repository.commit(yamlProject("two", "page"));
      await requested(scene, "production", "main has moved");
      expect((await getStack(scene, "production")).status?.lastUpdate?.lastSuccessfulCommit).toBe(first);
      repository.git("branch", "--force", "release", second);
      await requested(scene, "production", "released");
      const live = await stackUntil(scene, "production", isAt(second));
      expect(live.status?.outputs).toEqual({ text: "two" });

      // Of the very Pulumi stack that is live.
      repository.commit(yamlProject("three", "page", "cache"), "feature/add-cache");
      const feature = { branch: "feature/add-cache", repository: "webapp", stack: "production" };
      await deploy(scene, "webapp-preview", { ...feature, preview: true, destroyOnFinalize: true });
      const previewed = await stackUntil(scene, "webapp-preview", isReady);
      expect(previewed.status).toMatchObject({
        deployed: false,
        lastUpdate: { type: "preview", changes: { create: 1, same: 2 } },
      });
      expect(previewed.status?.outputs).toEqual({ text: "three" });
      await deleteStack(scene, "webapp-preview");
      const types = (await updatesOf(scene, "webapp-preview")).map(({ spec }) => spec?.type);
      expect(types).not.toContain("destroy");
      const after = await requested(scene, "production", "after the preview");
      expect(after.status?.lastUpdate).toMatchObject({ state: "succeeded", changes: { same: 2 } });
    },
    slow,
  );
});

test.concurrent(
  "drift is corrected by the resync",
  async () => {
    scene.git.create("drifting").commit(filesProject('new File("page", "as it should be");'));
    await deploy(scene, "drifting", {
      branch: "main",
      refresh: true,
      continueResyncOnCommitMatch: true,
      resyncFrequencySeconds: 60,
    });
    await stackUntil(scene, "drifting", isReady);
    expect(await inPod(scene, "drifting", "cat /state/page; echo -n changed by hand > /state/page")).toBe(
      "as it should be",
    );
    await waitFor(async () => (await inPod(scene, "drifting", "cat /state/page")) === "as it should be", {
      timeoutMs: 300_000,
      what: "the file to be corrected",
    });
    const corrected = await stackUntil(
      scene,
      "drifting",
      ({ status }) => status?.lastUpdate?.changes?.["update"] === 1,
    );
    expect(corrected.status?.next?.what).toBe("the periodic resync");
  },
  slow,
);

test.concurrent(
  "destroy on delete: also after a failed update, also without its source",
  async () => {
    const repository = scene.git.create("leaving");
    repository.commit(filesProject('new File("first", "x");'));
    await deploy(scene, "leaving", { branch: "main", destroyOnFinalize: true });
    await stackUntil(scene, "leaving", isReady);
    const broken = 'const second = new File("second", "y");\nnew File("third", "broken", { dependsOn: second });';
    const commit = repository.commit(filesProject(`new File("first", "x");\n${broken}`));
    await reconcile(scene, "leaving", "broken");
    const failed = await stackUntil(
      scene,
      "leaving",
      ({ status }) => status?.lastUpdate?.lastAttemptedCommit === commit && status.lastUpdate.state === "failed",
    );
    expect(JSON.stringify(failed.status?.conditions)).toContain("the disk is on fire");
    expect(await inPod(scene, "leaving", "cd /state; ls first second third 2>/dev/null || true")).toBe(
      "first\nsecond\n",
    );
    // The next one would find that there is nothing to be found.
    rmSync(repository.folder, { recursive: true });
    await reconcile(scene, "leaving", "gone");
    await stackUntil(scene, "leaving", hasReason("SourceUnavailable"));
    await deleteStack(scene, "leaving");
    // The volume is shared by the namespace's workspaces.
    scene.git.create("witness").commit(yamlProject("w"));
    await deploy(scene, "witness", { branch: "main" });
    await stackUntil(scene, "witness", isReady);
    const inState = (command: string): Promise<string> => inPod(scene, "witness", `cd /state; ${command} 2>&1 || true`);
    const stateFile = ".pulumi/stacks/files/leaving.json";
    expect(await inState("ls")).not.toMatch(/first|second|third/);
    // The emptied Pulumi stack stays, and a Stack of the same name uses it again.
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
    // Its template asks for the removal.
    expect(await inState(`cat ${stateFile}`)).toContain("No such file");
  },
  slow,
);

test.concurrent(
  "a terminating namespace: what cannot be destroyed any more is told, and kept until its owner lets it go",
  async () => {
    const ending = scene.beside;
    scene.git.create("ending").commit(yamlProject("one"));
    await deploy(ending, "ending", { branch: "main", destroyOnFinalize: true });
    await stackUntil(ending, "ending", isReady);
    await removeNamespace(ending.namespace);
    const told = await stackUntil(ending, "ending", hasReason("NamespaceTerminating"));
    expect(told.metadata.finalizers).toEqual(["finalizer.stack.pulumi.com"]);
    const body = { spec: { destroyOnFinalize: false } };
    const ref = { name: "ending", namespace: ending.namespace };
    await ending.client.patch(stacks, ref, { patch: { type: "merge", body } });
    await kubectl(["wait", "--for=delete", `namespace/${ending.namespace}`, "--timeout=300s"]);
  },
  slow,
);

interface Wish {
  /** Of the repository; the Stack's when absent. */
  readonly repository?: string;
  readonly [field: string]: unknown;
}

async function deploy(place: Place, name: string, { repository = name, ...spec }: Wish): Promise<void> {
  await applyTo(place, stackOf(name, { projectRepo: scene.git.url(repository), ...spec }));
}
