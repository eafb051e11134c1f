/** A real forge: Gitea reports pull requests with its own webhooks, and shows what their previews have found. */
import { expect, test } from "bun:test";

import { sharedGitea, waitFor, type Gitea } from "@pko/testkit";

import { decide } from "../approvals/decide.ts";
import { putSecret } from "../report/scene.ts";
import { StackScene, testTimeoutMs } from "../stack/scene.ts";
import { createReceiver, createSecret, receiverReady, secret, startReplica } from "../webhooks/scene.ts";
import { isAwaiting, isShown, reviewControllers } from "./scene.ts";

const repository = "tester/shop";
const path = `/repos/${repository}`;

interface Written {
  readonly commit: { readonly sha: string };
}

/** Commits a file, as a push would. */
async function commit(gitea: Gitea, file: string, branches: { branch: string; new_branch?: string }): Promise<string> {
  const body = { content: btoa(file), message: `Add ${file}`, ...branches };
  const written = await gitea.api<Written>("POST", `${path}/contents/${file}`, body);
  return written.commit.sha;
}

async function statusesOf(gitea: Gitea, sha: string): Promise<string[]> {
  const { statuses } = await gitea.api<{ statuses: { context: string; status: string }[] | null }>(
    "GET",
    `${path}/commits/${sha}/status`,
  );
  return (statuses ?? []).map(({ context, status }) => `${context}: ${status}`);
}

/** A Receiver for the webhooks of the repository. */
async function followWebhooks(gitea: Gitea, scene: StackScene): Promise<void> {
  const replica = await startReplica(scene, {
    more: (parts, webhooks) => reviewControllers(scene, parts, webhooks),
  });
  await createSecret(scene, "hooks");
  await createReceiver(scene, "hooks");
  const receiver = await receiverReady(scene, replica, "hooks");
  const config = { url: replica.url(receiver.status?.path ?? ""), content_type: "json", secret };
  const events = ["push", "pull_request", "pull_request_label", "pull_request_sync"];
  await gitea.api("POST", `${path}/hooks`, { type: "gitea", config, events, active: true });
}

test(
  "a pull request is previewed when it is labeled and pushed, and its merge is approved and applied, all within the interval",
  async () => {
    const gitea = await sharedGitea();
    await using scene = await StackScene.open("without operator");
    await gitea.api("POST", "/user/repos", { name: "shop", auto_init: true, default_branch: "main" });
    await putSecret(scene, gitea.token);
    await followWebhooks(gitea, scene);
    // The API and the repository are derived from the URL.
    const report = { type: "Gitea" as const, secretRef: { name: "forge" } };
    const pullRequests = { labels: ["preview"] };
    const projectRepo = `${gitea.url}/${repository}.git`;
    const approval = { required: "Always" } as const;
    await scene.stack("web", { projectRepo, branch: "main", pullRequests, report, approval });
    const first = await isAwaiting(scene);
    await decide(scene, first);
    await scene.isReady("web");

    const one = await commit(gitea, "one", { branch: "main", new_branch: "feature" });
    const pull = { title: "Feature", head: "feature", base: "main" };
    const { number } = await gitea.api<{ number: number }>("POST", `${path}/pulls`, pull);
    const label = await gitea.api<{ id: number }>("POST", `${path}/labels`, { name: "preview", color: "#00aabb" });
    await gitea.api("POST", `${path}/issues/${number}/labels`, { labels: [label.id] });
    const preview = `web-pr-${number}`;
    await waitFor(async () => (await scene.find(preview)) !== undefined, { timeoutMs: 30_000, what: preview });
    await scene.isReady(preview, one);

    const two = await commit(gitea, "two", { branch: "feature" });
    await scene.isReady(preview, two);
    await scene.becomes("web", "with the preview", isShown(`${number} Succeeded`));
    const comments = async () => await gitea.api<{ body: string }[]>("GET", `${path}/issues/${number}/comments`);
    await waitFor(async () => (await comments())[0]?.body.includes(two.slice(0, 10)), { what: "the comment" });
    expect(await comments()).toHaveLength(1);
    const context = `pulumi/${scene.namespace}/web`;
    expect(await statusesOf(gitea, two)).toEqual([`${context}/preview: success`]);

    // Gitea rejects a merge while it checks for conflicts.
    const merge = async (): Promise<boolean> => {
      const merging = gitea.api("POST", `${path}/pulls/${number}/merge`, { Do: "merge" });
      return await merging.then(
        () => true,
        () => false,
      );
    };
    await waitFor(merge, { timeoutMs: 30_000, what: "Gitea to merge" });
    const { commit: head } = await gitea.api<{ commit: { id: string } }>("GET", `${path}/branches/main`);
    const plan = await isAwaiting(scene, first);
    const isReported = (state: string) => async (): Promise<boolean> =>
      (await statusesOf(gitea, head.id)).includes(`${context}: ${state}`);
    await waitFor(isReported("pending"), { what: "the status of the plan" });
    await decide(scene, plan);
    await scene.isReady("web", head.id);
    await waitFor(isReported("success"), { what: "the status of the merged commit" });
    await scene.isDeleted(preview);
    expect(scene.runs.slice(2)).toEqual([`preview@${one}`, `preview@${two}`, `preview@${head.id}`, `up@${head.id}`]);
  },
  2 * testTimeoutMs,
);
