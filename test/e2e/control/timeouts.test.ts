/** Updates that hang are stopped after their timeouts, and interrupted operations on resources are reported. */
import { expect, test } from "bun:test";

import { updates } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import {
  applyTo,
  at,
  CliUser,
  execInPod,
  failedReason,
  filesProject,
  isReady,
  javascriptProject,
  kubectl,
  listUpdates,
  newStack,
  readyMessage,
  reconcileAndWait,
  stackUntil,
  useScene,
} from "../harness.ts";

const slow = 600_000;
const scene = useScene("timeouts");

const stackFrom = (name: string, spec: object = {}): object => newStack(name, { ...scene.git.source(name), ...spec });

test.concurrent(
  "a program that hangs is stopped, its lock is removed, and the next commit is deployed",
  async () => {
    const repository = scene.git.create("hung");
    repository.commit(javascriptProject("hung", "setInterval(() => {}, 1000);"));
    await applyTo(scene, stackFrom("hung", { updateTimeoutSeconds: 3600, silenceTimeoutSeconds: 15 }));
    const failed = await stackUntil(scene, "hung", ({ status }) => status?.lastUpdate?.state === "failed");
    expect(failed.status?.lastUpdate).toMatchObject({ failure: "timedOut", failures: 1 });
    expect((await new CliUser(() => scene).why("hung")).cause).toBe("timedOut");
    expect(readyMessage(failed)).toContain("the run was stopped after 15 s without output");
    const [first] = await listUpdates(scene, "hung");
    expect(first?.spec).toMatchObject({ timeoutSeconds: 3600, silenceTimeoutSeconds: 15 });
    expect(failedReason(first)).toBe("TimedOut");
    const events = await kubectl(["get", "events", ...at(scene), "--output=jsonpath={.items[*].reason}"]);
    expect(events.split(" ")).toContain("StackUpdateTimedOut");
    expect(await execInPod(scene, "hung", "find /state/.pulumi/locks -path '*/hung/*.json'")).toBe("");

    repository.commit(javascriptProject("hung", "exports.text = 'done';"));
    await stackUntil(scene, "hung", isReady);
  },
  slow,
);

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
