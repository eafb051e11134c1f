/** A real forge: Gitea reports a push with its own webhook, and shows the results of the runs that follow. */
import { expect, test } from "bun:test";

import { forge, forgeHttp } from "@pko/forge";
import { sharedGitea, waitFor, type Gitea } from "@pko/testkit";

import { StackScene, testTimeoutMs } from "../stack/scene.ts";
import { createReceiver, createSecret, receiverReady, secret, startReplica } from "../webhooks/scene.ts";
import { previewStack, putSecret, startOperator, updateUntil } from "./scene.ts";

const repository = "tester/web";
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

interface Status {
  readonly context: string;
  readonly status: string;
  readonly description: string;
  readonly target_url: string;
}

/** The last of each context. */
async function statusesOf(gitea: Gitea, sha: string): Promise<readonly Status[]> {
  const { statuses } = await gitea.api<{ statuses: readonly Status[] }>("GET", `${path}/commits/${sha}/status`);
  return statuses;
}

const isReported =
  (state: string) =>
  ({ status }: { status?: { report?: { state?: string } } }): boolean =>
    status?.report?.state === state;

test(
  "Gitea reports a push, and shows statuses and one comment for each pull request",
  async () => {
    const gitea = await sharedGitea();
    await using scene = await StackScene.open("without operator");
    const replica = await startReplica(scene);
    await startOperator(scene, { isAlone: true });
    await putSecret(scene, gitea.token);
    await gitea.api("POST", "/user/repos", { name: "web", auto_init: true, default_branch: "main" });
    const projectRepo = `${gitea.url}/${repository}.git`;
    // The API and the repository are derived from the URL.
    const settings = { type: "Gitea", secretRef: { name: "forge" }, consoleURL: "https://console.example" } as const;

    await createSecret(scene, "hooks");
    await createReceiver(scene, "hooks");
    const receiver = await receiverReady(scene, replica, "hooks");
    const config = { url: replica.url(receiver.status?.path ?? ""), content_type: "json", secret };
    await gitea.api("POST", `${path}/hooks`, { type: "gitea", config, events: ["push"], active: true });

    await scene.stack("web", { projectRepo, branch: "main", report: settings });
    await scene.isReady("web");
    // Without the webhook, the push would be noticed after a minute.
    const pushed = await commit(gitea, "Pulumi.yaml", { branch: "main" });
    const { metadata } = await updateUntil(scene, pushed, isReported("success"));
    expect(await statusesOf(gitea, pushed)).toMatchObject([
      {
        context: `pulumi/${scene.namespace}/web`,
        status: "success",
        description: "1 unchanged",
        target_url: `https://console.example/runs/${scene.namespace}/${metadata.name}`,
      },
    ]);

    const head = await commit(gitea, "one", { branch: "main", new_branch: "feature" });
    const pull = { title: "Feature", head: "feature", base: "main" };
    const { number } = await gitea.api<{ number: number }>("POST", `${path}/pulls`, pull);
    const target = { type: "Gitea", url: `${gitea.url}/api/v1`, repository } as const;
    const http = forgeHttp({ policy: { allowHttp: true, allowedAddresses: ["127.0.0.1"] } });
    const client = forge(target, { kind: "token", token: gitea.token }, { http });
    const open = {
      number,
      title: "Feature",
      head: { ref: "feature", commit: head },
      base: { ref: "main" },
      isFork: false,
    };
    expect(await client.openPullRequests(10)).toMatchObject({ pullRequests: [open], isComplete: true });
    expect(await client.openPullRequest(number)).toMatchObject(open);
    expect(await client.openPullRequest(number + 1)).toBeUndefined();

    await previewStack({ scene, settings }, { url: projectRepo, pullRequest: number, branch: "feature" });
    await updateUntil(scene, head, isReported("success"));
    const comments = async () =>
      await gitea.api<{ id: number; body: string }[]>("GET", `${path}/issues/${number}/comments`);
    const [comment] = await comments();
    expect(comment?.body).toContain(`commit \`${head.slice(0, 10)}\``);

    scene.simulator.script.update = () => ({ end: "failed", message: "it broke", errorClass: "programError" });
    const next = await commit(gitea, "two", { branch: "feature" });
    await updateUntil(scene, next, isReported("failure"));
    await waitFor(async () => (await comments())[0]?.body.includes(next.slice(0, 10)));
    expect((await comments()).map(({ id }) => id)).toEqual([comment?.id ?? 0]);
    expect(await statusesOf(gitea, next)).toMatchObject([
      {
        context: `pulumi/${scene.namespace}/preview`,
        status: "failure",
        description: "the preview failed: the program failed",
      },
    ]);
  },
  2 * testTimeoutMs,
);
