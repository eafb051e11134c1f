/** Reports to a stand-in for a forge, with a real API server and a real Git server. */
import { expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";

import type { ApprovalRequest, StackSpec, Update } from "@pko/api";
import type { PullRequest } from "@pko/forge";
import { isInvalid } from "@pko/kube";
import { updates, workspaceClasses } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { decide } from "../approvals/decide.ts";
import { gitServer } from "../stack/git-server.ts";
import { testTimeoutMs, type StackScene } from "../stack/scene.ts";
import {
  counted,
  openReportScene,
  previewStack,
  putSecret,
  putSecretValues,
  startOperator,
  storeRecord,
  updateUntil,
} from "./scene.ts";

const isState = (state: string) => (update: { status?: { report?: { state?: string; problem?: string } } }) =>
  update.status?.report?.state === state && update.status.report.problem === undefined;
const isProblem = (problem: string) => (update: { status?: { report?: { problem?: string } } }) =>
  update.status?.report?.problem === problem;

const pullRequest = (number: number, commit: string): PullRequest => ({
  number,
  title: "Change",
  url: "https://git.example",
  head: { ref: "feature", commit },
  base: { ref: "main" },
  labels: [],
  isFork: false,
  isDraft: false,
});

const pollMs = 64_000;

/** The request for the approval of a plan that was made for the commit, or covers it. */
async function planOf(scene: StackScene, commit: string): Promise<ApprovalRequest> {
  const isFor = ({ trigger, coveredCommit }: ApprovalRequest) => trigger.includes(commit) || coveredCommit === commit;
  const { status } = await scene.becomes("web", `at a plan for ${commit}`, (stack) => {
    const { approval } = stack.status ?? {};
    return approval !== undefined && isFor(approval);
  });
  if (!status?.approval) throw new Error("there is no request");
  return status.approval;
}

/** Every run continues until the returned function is called. */
function holdRuns({ simulator }: StackScene): () => void {
  simulator.script.update = () => ({ end: "never" });
  return () => {
    simulator.script.update = () => ({ end: "succeeded", changes: { create: 2, replace: 1 } });
  };
}

test(
  "the status of a commit follows its run, and a restart repeats nothing",
  async () => {
    using server = gitServer();
    await using setting = await openReportScene();
    const { scene, forge, settings } = setting;
    const first = await startOperator(scene);
    const commit = server.commit();
    const release = holdRuns(scene);
    await scene.stack("web", { projectRepo: server.url, branch: "main", report: settings });
    await updateUntil(scene, commit, isState("pending"));
    release();
    await updateUntil(scene, commit, isState("success"));
    const context = `pulumi/${scene.namespace}/web`;
    expect(forge.statuses).toMatchObject([
      { commit, context, state: "pending", description: "waiting to run" },
      { commit, context, state: "success", description: "1 replaced, 2 created" },
    ]);
    await waitFor(() => counted(first)["delivered"] === 2);

    await first.stop();
    const second = await startOperator(scene);
    await scene.fence();
    const next = server.commit();
    await scene.annotate("web", { "pulumi.com/reconciliation-request": "1" });
    await updateUntil(scene, next, isState("success"));
    expect(forge.statuses.filter((status) => status.commit === commit)).toHaveLength(2);
    await waitFor(() => counted(second)["delivered"] === forge.statuses.length - 2);
  },
  testTimeoutMs,
);

/** As the Update controller records an Update that is withdrawn before it starts. */
async function withdraw({ client }: StackScene, ref: ReturnType<StackScene["ref"]>): Promise<void> {
  const lastTransitionTime = new Date().toISOString();
  const conditions = ["Failed", "Complete"].map((type) => ({
    type,
    status: "True",
    reason: "Canceled",
    message: "It was withdrawn.",
    lastTransitionTime,
  }));
  const body = { status: { conditions, endTime: lastTransitionTime } };
  await client.patch(updates, ref, { patch: { type: "merge", body }, subresource: "status" });
}

test(
  "a commit keeps its result if another Update of it is withdrawn before it starts",
  async () => {
    using server = gitServer();
    await using setting = await openReportScene();
    const { scene, forge, settings } = setting;
    await startOperator(scene);
    const commit = server.commit();
    holdRuns(scene)();
    await scene.stack("web", { projectRepo: server.url, branch: "main", report: settings });
    await updateUntil(scene, commit, isState("success"));
    const before = forge.statuses.length;
    const release = holdRuns(scene);
    await scene.annotate("web", { "pulumi.com/reconciliation-request": "again" });
    const { status } = await scene.becomes("web", "at a second Update", (stack) => !!stack.status?.currentUpdate);
    const waiting = scene.ref(status?.currentUpdate?.name ?? "");
    const isWaiting = await scene.client.find(updates, waiting);
    expect(isWaiting?.status?.report).toBeUndefined();
    await withdraw(scene, waiting);
    await scene.becomes("web", "past it", (stack) => stack.status?.lastUpdate?.name === waiting.name);
    await scene.fence();
    expect(forge.statuses).toHaveLength(before);
    expect(forge.statuses.at(-1)).toMatchObject({ commit, state: "success", description: "1 replaced, 2 created" });
    release();
    await waitFor(() => forge.statuses.length > before, { what: "the status of the third Update" });
    expect(forge.statuses.slice(before).map(({ state }) => state)).toEqual(["success"]);
  },
  testTimeoutMs,
);

test(
  "an unavailable forge delays no run, is visible, and receives the last state when it responds",
  async () => {
    using server = gitServer();
    await using setting = await openReportScene();
    const { scene, forge, settings } = setting;
    const operator = await startOperator(scene);
    const outage = { on: true };
    const answer = (): Response => {
      if (outage.on) forge.answers.push(answer);
      return new Response("down", { status: 503 });
    };
    forge.answers.push(answer);
    const commit = server.commit();
    await scene.stack("web", { projectRepo: server.url, branch: "main", report: settings });
    await scene.isReady("web", commit);
    const { status } = await updateUntil(scene, commit, isProblem("Unavailable"));
    expect(status?.report?.message).toContain("(status 503); it is reported when the forge responds.");
    await waitFor(() => operator.events.some(({ reason }) => reason === "ReportFailed"));

    // The operator restarts in between: what was not reported is not forgotten.
    await operator.stop();
    const second = await startOperator(scene);
    await waitFor(() => (counted(second)["unavailable"] ?? 0) > 0);
    outage.on = false;
    forge.answers.length = 0;
    scene.jump(60_000);
    await updateUntil(scene, commit, isState("success"));
    expect(forge.statuses.at(-1)).toMatchObject({ commit, state: "success" });
    await waitFor(() => second.events.some(({ reason }) => reason === "ReportResumed"));
  },
  testTimeoutMs,
);

test(
  "what ends while the forge is left alone is reported after a restart",
  async () => {
    using server = gitServer();
    await using setting = await openReportScene();
    const { scene, forge, settings } = setting;
    const operator = await startOperator(scene);
    forge.answers.push(() => new Response("", { status: 429, headers: { "retry-after": "86400" } }));
    const commits = [server.commit()];
    await scene.stack("web", { projectRepo: server.url, branch: "main", report: settings });
    const isDue = ({ status }: Update): boolean =>
      status?.report?.due === true || status?.report?.problem !== undefined;
    await updateUntil(scene, commits[0] ?? "", isDue);
    for (const request of ["1", "2"]) {
      const next = server.commit();
      commits.push(next);
      await scene.annotate("web", { "pulumi.com/reconciliation-request": request });
      await scene.isReady("web", next);
      await updateUntil(scene, next, isDue);
    }
    await operator.stop();
    await startOperator(scene);
    for (const commit of commits) await updateUntil(scene, commit, isState("success"));
    expect(forge.statuses.map(({ commit }) => commit).toSorted()).toEqual(commits.toSorted());
  },
  testTimeoutMs,
);

test(
  "a Stack that begins to report does not report its history, also after a restart",
  async () => {
    using server = gitServer();
    await using setting = await openReportScene();
    const { scene, forge, settings } = setting;
    const operator = await startOperator(scene);
    const old = server.commit();
    await scene.stack("web", { projectRepo: server.url, branch: "main" });
    await scene.isReady("web", old);
    const last = server.commit();
    await scene.annotate("web", { "pulumi.com/reconciliation-request": "1" });
    await scene.isReady("web", last);
    await scene.stack("web", { projectRepo: server.url, branch: "main", report: settings });
    await updateUntil(scene, last, isState("success"));
    const { metadata } = await updateUntil(scene, old);
    const body = { metadata: { labels: { touched: "yes" } } };
    await scene.client.patch(updates, scene.ref(metadata.name ?? ""), { patch: { type: "merge", body } });
    await operator.stop();
    const second = await startOperator(scene);
    const next = server.commit();
    await scene.annotate("web", { "pulumi.com/reconciliation-request": "2" });
    await updateUntil(scene, next, isState("success"));
    await waitFor(() => (counted(second)["delivered"] ?? 0) > 0);
    expect(forge.statuses.map(({ commit }) => commit)).not.toContain(old);
  },
  testTimeoutMs,
);

test(
  "a limit of the forge is respected",
  async () => {
    using server = gitServer();
    await using setting = await openReportScene();
    const { scene, forge, settings } = setting;
    const operator = await startOperator(scene);
    holdRuns(scene);
    forge.answers.push(() => new Response("", { status: 429, headers: { "retry-after": "600" } }));
    const commit = server.commit();
    await scene.stack("web", { projectRepo: server.url, branch: "main", report: settings });
    await updateUntil(scene, commit, isProblem("RateLimited"));
    scene.jump(300_000);
    await scene.fence();
    expect(counted(operator)).toEqual({ rateLimited: 1 });
    scene.jump(400_000);
    await updateUntil(scene, commit, isState("pending"));
    await waitFor(() => counted(operator)["delivered"] === 1);
    expect(counted(operator)).toEqual({ rateLimited: 1, delivered: 1 });
  },
  testTimeoutMs,
);

test(
  "a new token ends the pause that a forge wants, for all Stacks that report to it",
  async () => {
    using server = gitServer();
    await using setting = await openReportScene();
    const { scene, forge, settings } = setting;
    const operator = await startOperator(scene);
    forge.answers.push(() => new Response("", { status: 429, headers: { "retry-after": "3600" } }));
    const commit = server.commit();
    await scene.stack("web", { projectRepo: server.url, branch: "main", report: settings });
    await waitFor(() => counted(operator)["rateLimited"] === 1, { what: "the limit" });
    await scene.stack("api", { projectRepo: server.url, branch: "main", report: settings });
    await scene.isReady("api", commit);
    forge.token = "new-token";
    await putSecret(scene, "new-token");
    scene.jump(70_000);
    const areBoth = async (): Promise<boolean> => {
      const { items } = await scene.client.list(updates, { namespace: scene.namespace });
      return items.filter(isState("success")).length === 2;
    };
    await waitFor(areBoth, { what: "the reports of both Stacks" });
    expect(counted(operator)["rateLimited"]).toBe(1);
  },
  testTimeoutMs,
);

test(
  "many reports to one forge are sent two at a time, and the others follow without a pause",
  async () => {
    using server = gitServer();
    await using setting = await openReportScene();
    const { scene, forge, settings } = setting;
    await startOperator(scene);
    let [inFlight, most] = [0, 0];
    const answer = async (): Promise<Response> => {
      forge.answers.push(answer);
      most = Math.max(most, ++inFlight);
      // A slow forge.
      await Bun.sleep(50);
      inFlight--;
      return Response.json({}, { status: 201 });
    };
    forge.answers.push(answer);
    const release = holdRuns(scene);
    server.commit();
    const names = Array.from({ length: 6 }, (_, at) => `web-${at}`);
    for (const name of names) await scene.stack(name, { projectRepo: server.url, branch: "main", report: settings });
    const areAll = async (state: string): Promise<boolean> => {
      const { items } = await scene.client.list(updates, { namespace: scene.namespace });
      return items.filter(isState(state)).length === names.length;
    };
    // Less than the pause after which an Update that was not woken tries again.
    const patience = { timeoutMs: 55_000 };
    await waitFor(() => areAll("pending"), { ...patience, what: "all reports about the start" });
    release();
    await waitFor(() => areAll("success"), { ...patience, what: "all reports about the end" });
    expect(most).toBeLessThanOrEqual(2);
  },
  testTimeoutMs,
);

test(
  "wrong credentials are visible without being shown, and a new Secret is used",
  async () => {
    using server = gitServer();
    await using setting = await openReportScene();
    const { scene, forge, settings } = setting;
    await putSecret(scene, "canary-token");
    const operator = await startOperator(scene);
    const commit = server.commit();
    await scene.stack("web", { projectRepo: server.url, branch: "main", report: settings });
    await scene.isReady("web", commit);
    const { status } = await updateUntil(scene, commit, isProblem("Unauthorized"));
    expect(status?.report?.message).toContain("give the token the permission to set commit statuses");
    expect(JSON.stringify([status, operator.events])).not.toContain("canary");
    await putSecret(scene, forge.token);
    scene.jump(70_000);
    await updateUntil(scene, commit, isState("success"));
  },
  testTimeoutMs,
);

test(
  "a GitHub App reports with tokens of its installation, which are requested once",
  async () => {
    using server = gitServer();
    await using setting = await openReportScene();
    const { scene, forge, settings } = setting;
    const { privateKey } = generateKeyPairSync("rsa", {
      modulusLength: 2048,
      privateKeyEncoding: { type: "pkcs8", format: "pem" },
      publicKeyEncoding: { type: "spki", format: "pem" },
    });
    await putSecretValues(scene, { appID: "1", installationID: "7", privateKey });
    await startOperator(scene);
    const release = holdRuns(scene);
    const commit = server.commit();
    await scene.stack("web", { projectRepo: server.url, branch: "main", report: settings });
    await updateUntil(scene, commit, isState("pending"));
    release();
    await updateUntil(scene, commit, isState("success"));
    const exchanges = forge.calls.filter(({ path }) => path === "/api/v3/app/installations/7/access_tokens");
    expect([exchanges.length, forge.statuses.at(-1)?.state]).toEqual([1, "success"]);
  },
  testTimeoutMs,
);

test(
  "a preview of a pull request is a comment, which is updated in place, without secrets",
  async () => {
    using server = gitServer();
    await using setting = await openReportScene("Gitea");
    const { scene, forge } = setting;
    let operator = await startOperator(scene);
    holdRuns(scene);
    const first = server.commit();
    forge.pullRequests = [pullRequest(7, first)];
    await previewStack(setting, { url: server.url, pullRequest: 7 });
    const update = await updateUntil(scene, first);
    await storeRecord(scene, update, [
      {
        kind: "resource",
        phase: "finished",
        op: "delete",
        urn: "urn:pulumi:dev::p::aws:s3:Bucket::old",
        resourceType: "aws:s3:Bucket",
        changes: [{ path: "password", kind: "delete", old: '"canary-value"' }],
      },
    ]);
    scene.simulator.script.update = () => ({
      end: "succeeded",
      changes: { delete: 1 },
      outputs: { url: "https://web.example", password: "canary-output" },
      secrets: ["password"],
    });
    const { status } = await updateUntil(scene, first, isState("success"));
    const [comment] = forge.comments.get(7) ?? [];
    expect(status?.report?.commentID).toBe(String(comment?.id));
    expect(comment?.body).toContain("- delete `aws:s3:Bucket` `old`");
    expect(comment?.body).toContain('- `url`: `"https://web.example"`\n');
    expect(comment?.body).toContain("- `password`: secret");

    // With the next commit, also after a restart.
    await operator.stop();
    operator = await startOperator(scene);
    scene.simulator.script.update = () => ({ end: "failed", message: "it broke", errorClass: "programError" });
    const second = server.commit();
    await scene.annotate("preview", { "pulumi.com/reconciliation-request": "1" });
    await updateUntil(scene, second, isState("failure"));
    expect(forge.comments.get(7)).toHaveLength(1);
    expect(forge.comments.get(7)?.[0]?.body).toContain("**the preview failed: the program failed**");
    expect(JSON.stringify([forge.calls.map(({ body }) => body), operator.events])).not.toContain("canary");
  },
  testTimeoutMs,
);

test(
  "a late report about an old head sets its status, and leaves the comment of the new head alone",
  async () => {
    using server = gitServer();
    await using setting = await openReportScene("Gitea");
    const { scene, forge } = setting;
    await startOperator(scene);
    const old = server.commit();
    forge.pullRequests = [pullRequest(7, old)];
    const outage = { of: old };
    forge.fails = ({ path }) => path.endsWith(`/statuses/${outage.of}`);
    await previewStack(setting, { url: server.url, pullRequest: 7 });
    await updateUntil(scene, old, isProblem("Unavailable"));
    const head = server.commit();
    await scene.annotate("preview", { "pulumi.com/reconciliation-request": "1" });
    scene.jump(60_000);
    await updateUntil(scene, head, isState("success"));
    outage.of = "none";
    scene.jump(3_600_000);
    await updateUntil(scene, old, isState("success"));
    expect(forge.statuses.at(-1)).toMatchObject({ commit: old, state: "success" });
    expect(forge.comments.get(7)).toHaveLength(1);
    expect(forge.comments.get(7)?.[0]?.body).toContain(head.slice(0, 10));
  },
  testTimeoutMs,
);

test(
  "a retry of the same commit replaces its status, in order",
  async () => {
    using server = gitServer();
    await using setting = await openReportScene("GitLab");
    const { scene, forge, settings } = setting;
    await startOperator(scene);
    // Only the first one: on a busy machine, it may be retried before the test continues.
    let failing: string | undefined;
    scene.simulator.script.update = ({ metadata: { uid } }) =>
      (failing ??= uid) === uid ? { end: "failed", message: "no" } : { end: "succeeded" };
    const commit = server.commit();
    await scene.stack("web", { projectRepo: server.url, branch: "main", report: settings });
    await waitFor(() => forge.statuses.some(({ state }) => state === "failed"));
    scene.jump(3_600_000);
    await scene.isReady("web", commit);
    await waitFor(() => forge.statuses.at(-1)?.state === "success");
    const states = forge.statuses.map(({ state }) => state);
    expect(states.slice(states.indexOf("failed") + 1)).not.toContain("failed");
  },
  testTimeoutMs,
);

test(
  "a commit shows what became of its plan: superseded, applied for a later commit, or rejected",
  async () => {
    using server = gitServer();
    server.git("config", "uploadpack.allowFilter", "true");
    await using setting = await openReportScene();
    const { scene, forge, settings } = setting;
    await startOperator(scene);
    const push = (content: string): string => {
      const commit = server.commitFiles({ "Pulumi.yaml": content });
      scene.jump(pollMs);
      return commit;
    };
    const shows = async (commit: string, state: string): Promise<string | undefined> => {
      const last = () => forge.statuses.findLast((status) => status.commit === commit);
      await waitFor(() => last()?.state === state, { what: `${state} for ${commit}` });
      return last()?.description;
    };
    const first = server.commitFiles({ "Pulumi.yaml": "one" });
    const approval = { required: "Always" } as const;
    await scene.stack("web", { projectRepo: server.url, branch: "main", approval, report: settings });
    await updateUntil(scene, first, ({ status }) => status?.plan !== undefined && status.report?.state === "pending");

    const second = push("two");
    expect(await shows(first, "error")).toBe("the plan was superseded before it was applied");
    await planOf(scene, second);

    const third = push("two");
    await decide(scene, await planOf(scene, third));
    await shows(third, "success");
    await shows(second, "success");

    const fourth = push("four");
    await decide(scene, await planOf(scene, fourth), { decision: "Reject" });
    expect(await shows(fourth, "failure")).toBe("the plan was rejected");

    // What is final stays.
    await planOf(scene, push("five"));
    await scene.fence();
    const states = [first, second, fourth].map((commit) =>
      forge.statuses.filter((each) => each.commit === commit && each.state !== "pending").map(({ state }) => state),
    );
    expect(states).toEqual([["error"], ["success"], ["failure"]]);
  },
  testTimeoutMs,
);

test(
  "a WorkspaceClass reports for its namespaces",
  async () => {
    using server = gitServer();
    await using setting = await openReportScene();
    const { scene, forge, settings } = setting;
    const name = `class-${scene.namespace}`;
    await scene.client.create(workspaceClasses, {
      apiVersion: workspaceClasses.apiVersion,
      kind: workspaceClasses.kind,
      metadata: { name },
      spec: {
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": scene.namespace } },
        report: settings,
      },
    });
    scene.defer(() => scene.client.delete(workspaceClasses, { name }));
    await startOperator(scene, { classes: true });
    const commit = server.commit();
    await scene.stack("web", { projectRepo: server.url, branch: "main" });
    await updateUntil(scene, commit, isState("success"));
    expect(forge.statuses.at(-1)).toMatchObject({ commit, state: "success" });
  },
  testTimeoutMs,
);

const secretRef = { name: "forge" };
const rejected: readonly (readonly [string, Partial<StackSpec>, string])[] = [
  [
    "a program without commits",
    { programRef: { name: "p" }, report: { type: "GitHub", secretRef } },
    "it is about commits",
  ],
  [
    "a Flux source of an unknown forge",
    {
      fluxSource: { sourceRef: { apiVersion: "source.toolkit.fluxcd.io/v1", kind: "GitRepository", name: "web" } },
      report: { type: "Gitea", secretRef, repository: "a/b" },
    },
    "set report.url",
  ],
  ["a URL with a user", { report: { type: "Gitea", secretRef, url: "https://me@git.example" } }, "is not a URL"],
  [
    "a repository without owner",
    { report: { type: "GitHub", secretRef, repository: "web" } },
    "use a path such as owner/name",
  ],
  [
    "a console without scheme",
    { report: { type: "GitHub", secretRef, consoleURL: "console.example" } },
    "is not a URL",
  ],
  ["another forge", { report: { type: "Other" as "GitHub", secretRef } }, "Unsupported value"],
];
test.each(rejected)(
  "admission rejects %s",
  async (_, spec, message) => {
    await using setting = await openReportScene();
    const { scene } = setting;
    const source = spec.programRef || spec.fluxSource ? {} : { projectRepo: "https://github.com/a/b", branch: "main" };
    const error: unknown = await scene.stack("web", { ...source, ...spec }).catch((reason: unknown) => reason);
    expect(isInvalid(error)).toBe(true);
    expect(String(error)).toContain(message);
  },
  testTimeoutMs,
);
