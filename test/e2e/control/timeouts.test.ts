/** Updates that hang are stopped after their timeouts, and interrupted operations on resources are reported. */
import { expect, test } from "bun:test";

import type { Stack } from "@pko/api";
import { updates } from "@pko/operator/kinds";
import { waitFor } from "@pko/testkit";

import {
  applyTo,
  CliUser,
  execInPod,
  failedReason,
  filesProject,
  isAt,
  isReady,
  javascriptProject,
  listUpdates,
  newStack,
  onlyOnRequest,
  podWith,
  readyMessage,
  reconcileAndWait,
  requestReconcile,
  stackUntil,
  untilEvents,
  useScene,
} from "../harness.ts";

const slow = 600_000;
const scene = useScene("timeouts");

const stackFrom = (name: string, spec: object = {}): object =>
  newStack(name, { ...scene.git.source(name), ...onlyOnRequest, ...spec });

/** How a program hangs, and how its run ends. */
const hangs = {
  "is silent": ["setInterval(() => {}, 1000);", "the run was stopped after 30 s without output"],
  "prints endlessly": [
    "setInterval(() => console.log('more'), 5000);",
    "the run was stopped because it exceeded its timeout of 60 s",
  ],
  // Pulumi waits for what it has started.
  "ignores SIGINT": [
    `const { dynamic } = require("@pulumi/pulumi");
     new dynamic.Resource({ create: () => new Promise(() => setInterval(() => {}, 1000)) }, "stuck", {});`,
    "did not stop within the grace period of 5 s, and was killed",
  ],
} as const;

test.concurrent(
  "a program that hangs in any way is stopped, its lock is removed, and the next commit is deployed",
  async () => {
    const repository = scene.git.create("hung");
    const workspaceTemplate = podWith({ container: { args: ["--grace-seconds=5"] } });
    // Long enough for a program to start on a busy machine. A retry would lock the stack again.
    const timeouts = { updateTimeoutSeconds: 60, silenceTimeoutSeconds: 30, maxFailures: 1 };
    for (const [how, [program, message]] of Object.entries(hangs)) {
      const commit = repository.commit(javascriptProject("hung", program));
      await applyTo(scene, stackFrom("hung", { ...timeouts, workspaceTemplate }));
      await requestReconcile(scene, "hung", commit);
      const failed = await stackUntil(scene, "hung", hasTimedOutAt(commit));
      expect({ how, message: readyMessage(failed) }).toEqual({
        how,
        message: expect.stringContaining(message) as string,
      });
      expect(await execInPod(scene, "hung", "find /state/.pulumi/locks -path '*/hung/*.json'")).toBe("");
    }
    expect((await new CliUser(() => scene).why("hung")).cause).toBe("timedOut");
    const [first] = await listUpdates(scene, "hung");
    expect(first?.spec).toMatchObject({ timeoutSeconds: 60, silenceTimeoutSeconds: 30 });
    expect(failedReason(first)).toBe("TimedOut");
    await untilEvents(scene, "hung", "StackUpdateTimedOut");

    const working = repository.commit(javascriptProject("hung", "exports.text = 'done';"));
    await requestReconcile(scene, "hung", working);
    await stackUntil(scene, "hung", isAt(working));
  },
  slow,
);

const hasTimedOutAt =
  (commit: string) =>
  ({ status }: Stack): boolean =>
    status?.lastUpdate?.lastAttemptedCommit === commit && status.lastUpdate.failure === "timedOut";

test.concurrent(
  "an interrupted create is reported until a user clears it",
  async () => {
    scene.git.create("pending").commit(filesProject('new File("a", "held");'));
    await applyTo(scene, stackFrom("pending"));
    const isCreating = async (): Promise<boolean> =>
      (await listUpdates(scene, "pending")).some(({ status }) => status?.progress?.current?.includes("::a"));
    await waitFor(isCreating, { timeoutMs: 240_000, what: "the creation of the file" });
    await execInPod(scene, "pending", killCli);
    await stackUntil(scene, "pending", ({ status }) => status?.lastUpdate?.state === "failed");
    const [first] = await listUpdates(scene, "pending");
    expect(first?.status?.pendingOperations).toMatchObject([{ operation: "creating" }]);
    expect(failedReason(first)).toBe("Aborted");

    // The file is created by the retry, but only a user knows whether the first attempt has created one, too.
    await execInPod(scene, "pending", "touch /state/release");
    const ready = await stackUntil(scene, "pending", isReady);
    expect(readyMessage(ready)).toContain("Warning: the state has pending operations");
    expect(readyMessage(ready)).toContain("clearPendingCreates: true");

    const { client, namespace } = scene;
    const spec = { workspaceName: "pending", stackName: "pending", type: "refresh", clearPendingCreates: true };
    await applyTo(scene, { apiVersion: updates.apiVersion, kind: updates.kind, metadata: { name: "clear" }, spec });
    await waitFor(
      async () => failedReason(await client.get(updates, { name: "clear", namespace })) === "UpdateSucceeded",
      {
        timeoutMs: 120_000,
        what: "the end of the refresh",
      },
    );
    expect(readyMessage(await reconcileAndWait(scene, "pending", "after"))).not.toContain("Warning");
  },
  slow,
);

/** As the kernel does when the pod runs out of memory. */
const killCli =
  'for p in /proc/[0-9]*; do if [ "$(cat $p/comm 2>/dev/null)" = pulumi ]; then kill -9 ${p#/proc/}; fi; done';
