/** The documents' stories of GitOps: what is pinned, tagged, promoted, previewed, corrected and destroyed. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createRepository, serveGit, type GitServer } from "@pko/agent/testing";
import type { Stack } from "@pko/api";
import { network } from "@pko/cluster";
import { stacks } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import {
  apply,
  getStack,
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
import { filesProject, yamlProject } from "./programs.ts";

const slow = 600_000;
const repositories = mkdtempSync(join(tmpdir(), "pko-git-"));

let operator: Operator;
let place: Place;
let ending: Place;
let git: GitServer;

beforeAll(async () => {
  const [namespace, other] = [await newNamespace("scenarios"), await newNamespace("ending")];
  operator = await startOperator([namespace, other]);
  place = { client: operator.client, namespace };
  ending = { client: operator.client, namespace: other };
  git = serveGit(repositories, { hostname: network.machine });
}, slow);

afterAll(async () => {
  await removeNamespace(place.namespace);
  await git.stop();
  await operator.stop();
});

describe("releases", () => {
  test.concurrent(
    "a pinned commit stays deployed whatever the branches do; promotion is another commit",
    async () => {
      const repository = createRepository(repositories, "pinned");
      const first = repository.commit(yamlProject("one"));
      await deploy(place, "pinned", { commit: first });
      const deployed = await stackUntil(place, "pinned", isReady);
      expect(deployed.status?.outputs).toEqual({ text: "one" });

      const second = repository.commit(yamlProject("two"));
      const asked = await requested(place, "pinned", "look");
      expect(asked.status?.lastUpdate?.lastSuccessfulCommit).toBe(first);

      await deploy(place, "pinned", { commit: second });
      const promoted = await stackUntil(place, "pinned", isAt(second));
      expect(promoted.status?.outputs).toEqual({ text: "two" });
    },
    slow,
  );

  test.concurrent(
    "a tag is followed where it goes, in both of its spellings",
    async () => {
      const repository = createRepository(repositories, "tagged");
      const first = repository.commit(yamlProject("one"));
      repository.git("tag", "v1", first);
      await deploy(place, "tagged", { branch: "refs/tags/v1" });
      await stackUntil(place, "tagged", isAt(first));

      const second = repository.commit(yamlProject("two"));
      repository.git("tag", "--force", "v1", second);
      await requested(place, "tagged", "moved");
      await stackUntil(place, "tagged", isAt(second));

      repository.git("tag", "v2", first);
      await deploy(place, "tagged", { tag: "v2" });
      const back = await stackUntil(place, "tagged", isAt(first));
      expect(back.status?.outputs).toEqual({ text: "one" });
    },
    slow,
  );

  test.concurrent(
    "promotion by release branch: production moves with the branch, not with main; a preview of a feature changes neither",
    async () => {
      const repository = createRepository(repositories, "webapp");
      const first = repository.commit(yamlProject("one", "page"));
      repository.git("branch", "release", first);
      await deploy(place, "production", { branch: "release", repository: "webapp" });
      await stackUntil(place, "production", isAt(first));

      const second = repository.commit(yamlProject("two", "page"));
      await requested(place, "production", "main has moved");
      expect((await getStack(place, "production")).status?.lastUpdate?.lastSuccessfulCommit).toBe(first);
      repository.git("branch", "--force", "release", second);
      await requested(place, "production", "released");
      const live = await stackUntil(place, "production", isAt(second));
      expect(live.status?.outputs).toEqual({ text: "two" });

      // Of the very Pulumi stack that is live.
      repository.commit(yamlProject("three", "page", "cache"), "feature/add-cache");
      const feature = { branch: "feature/add-cache", repository: "webapp", stack: "production" };
      await deploy(place, "webapp-preview", { ...feature, preview: true, destroyOnFinalize: true });
      const previewed = await stackUntil(place, "webapp-preview", isReady);
      expect(previewed.status).toMatchObject({
        deployed: false,
        lastUpdate: { type: "preview", changes: { create: 1, same: 2 } },
      });
      expect(previewed.status?.outputs).toEqual({ text: "three" });
      await kubectl(["delete", "stack", "webapp-preview", "-n", place.namespace, "--timeout=300s"]);
      const types = (await updatesOf(place, "webapp-preview")).map(({ spec }) => spec?.type);
      expect(types).not.toContain("destroy");
      const after = await requested(place, "production", "after the preview");
      expect(after.status?.lastUpdate).toMatchObject({ state: "succeeded", changes: { same: 2 } });
    },
    slow,
  );
});

test.concurrent(
  "drift is corrected by the resync",
  async () => {
    createRepository(repositories, "drifting").commit(filesProject('new File("page", "as it should be");'));
    await deploy(place, "drifting", {
      branch: "main",
      refresh: true,
      continueResyncOnCommitMatch: true,
      resyncFrequencySeconds: 60,
    });
    await stackUntil(place, "drifting", isReady);
    expect(await inPod("drifting", "cat /state/page; echo -n changed by hand > /state/page")).toBe("as it should be");
    await waitFor(async () => (await inPod("drifting", "cat /state/page")) === "as it should be", {
      timeoutMs: 300_000,
      what: "the file to be corrected",
    });
    const corrected = await stackUntil(
      place,
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
    const repository = createRepository(repositories, "leaving");
    repository.commit(filesProject('new File("first", "x");'));
    await deploy(place, "leaving", { branch: "main", destroyOnFinalize: true });
    await stackUntil(place, "leaving", isReady);
    const broken = 'const second = new File("second", "y");\nnew File("third", "broken", { dependsOn: second });';
    const commit = repository.commit(filesProject(`new File("first", "x");\n${broken}`));
    await annotate(place, "leaving", "broken");
    const failed = await stackUntil(
      place,
      "leaving",
      ({ status }) => status?.lastUpdate?.lastAttemptedCommit === commit && status.lastUpdate.state === "failed",
    );
    expect(JSON.stringify(failed.status?.conditions)).toContain("the disk is on fire");
    expect(await inPod("leaving", "cd /state; ls first second third 2>/dev/null || true")).toBe("first\nsecond\n");
    // The next one would find that there is nothing to be found.
    rmSync(repository.folder, { recursive: true });
    await annotate(place, "leaving", "gone");
    await stackUntil(place, "leaving", ({ status }) =>
      Boolean(status?.conditions?.some(({ reason }) => reason === "SourceUnavailable")),
    );
    await kubectl(["delete", "stack", "leaving", "-n", place.namespace, "--timeout=300s"]);
    // The volume is shared by the namespace's workspaces.
    createRepository(repositories, "witness").commit(yamlProject("w"));
    await deploy(place, "witness", { branch: "main" });
    await stackUntil(place, "witness", isReady);
    expect(
      await inPod("witness", "cd /state; ls first second third .pulumi/stacks/files 2>/dev/null || true"),
    ).not.toMatch(/first|second|third|leaving\.json$/m);
  },
  slow,
);

test.concurrent(
  "a terminating namespace: what cannot be destroyed any more is told, and kept until its owner lets it go",
  async () => {
    createRepository(repositories, "ending").commit(yamlProject("one"));
    await deploy(ending, "ending", { branch: "main", destroyOnFinalize: true });
    await stackUntil(ending, "ending", isReady);
    await removeNamespace(ending.namespace);
    const told = await stackUntil(ending, "ending", ({ status }) =>
      Boolean(status?.conditions?.some(({ reason }) => reason === "NamespaceTerminating")),
    );
    expect(told.metadata.finalizers).toEqual(["finalizer.stack.pulumi.com"]);
    const body = { spec: { destroyOnFinalize: false } };
    const ref = { name: "ending", namespace: ending.namespace };
    await operator.client.patch(stacks, ref, { patch: { type: "merge", body } });
    await kubectl(["wait", "--for=delete", `namespace/${ending.namespace}`, "--timeout=300s"]);
  },
  slow,
);

interface Wish {
  /** Of the repository; the Stack's when absent. */
  readonly repository?: string;
  readonly [field: string]: unknown;
}

async function deploy({ namespace }: Place, name: string, wish: Wish): Promise<void> {
  const { repository = name, ...spec } = wish;
  await apply({
    apiVersion: "pulumi.com/v1",
    kind: "Stack",
    metadata: { name, namespace },
    spec: {
      ...onFileBackend,
      stack: name,
      projectRepo: `http://${network.machine}:${git.port}/${repository}.git`,
      ...spec,
    },
  });
}

const isAt =
  (commit: string) =>
  (stack: Stack): boolean =>
    isReady(stack) && stack.status?.lastUpdate?.lastSuccessfulCommit === commit;

async function annotate({ namespace }: Place, name: string, request: string): Promise<void> {
  const annotation = `pulumi.com/reconciliation-request=${request}`;
  await kubectl(["annotate", "stack", name, "-n", namespace, "--overwrite", annotation]);
}

/** External trigger: the Stack once it has run for the request. */
async function requested(at: Place, name: string, request: string): Promise<Stack> {
  await annotate(at, name, request);
  return await stackUntil(
    at,
    name,
    (stack) => isReady(stack) && stack.status?.lastUpdate?.reconcileRequest === request,
  );
}

async function inPod(stack: string, script: string): Promise<string> {
  const pod = ["exec", `${stack}-workspace-0`, "-n", place.namespace, "-c", "pulumi"];
  return await kubectl([...pod, "--", "sh", "-c", script]);
}
