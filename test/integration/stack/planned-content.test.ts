/** An approval binds contents: what happens to a plan when its branch has a new commit, with a real Git server. */
import { expect, test } from "bun:test";
import type { ApprovalRequest, Stack, StackSpec } from "@pko/api";
import { builtin } from "@pko/kube";
import { workspaces } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { decide } from "../approvals/decide.ts";
import { gitServer, type GitServer } from "./git-server.ts";
import { condition, reasonOf, StackScene, testTimeoutMs } from "./scene.ts";

const files = { "infra/Pulumi.yaml": "name: web", "README.md": "one" };
const pollMs = 64_000;

interface Waiting extends AsyncDisposable {
  readonly server: GitServer;
  readonly scene: StackScene;
  readonly planned: string;
  readonly request: ApprovalRequest;
}

/** A Stack whose first plan waits for an approval. */
async function waiting(spec: Partial<StackSpec> = {}): Promise<Waiting> {
  const server = gitServer();
  server.git("config", "uploadpack.allowFilter", "true");
  const planned = server.commitFiles(files);
  const scene = await StackScene.open();
  await scene.stack("web", { projectRepo: server.url, branch: "main", approval: { required: "Always" }, ...spec });
  const stack = await scene.becomes("web", "awaiting an approval", (each) => reasonOf(each) === "AwaitingApproval");
  if (!stack.status?.approval) throw new Error("there is no request");
  return {
    server,
    scene,
    planned,
    request: stack.status.approval,
    async [Symbol.asyncDispose]() {
      await scene[Symbol.asyncDispose]();
      server[Symbol.dispose]();
    },
  };
}

const covers = async ({ scene }: Waiting, commit: string) =>
  await scene.becomes(
    "web",
    `at a plan that covers ${commit}`,
    ({ status }) => status?.approval?.coveredCommit === commit,
  );

const isSuperseded = async ({ scene, request }: Waiting) =>
  await scene.becomes(
    "web",
    "awaiting the approval of another plan",
    (stack) => reasonOf(stack) === "AwaitingApproval" && stack.status?.approval?.updateName !== request.updateName,
  );

const eventMessages = async ({ client, namespace }: StackScene): Promise<string[]> => {
  const events = { apiVersion: "v1", kind: "Event", plural: "events", namespaced: true } as const;
  const { items } = await client.list(events, { namespace });
  return items.flatMap((event) => ("message" in event ? [String(event.message)] : []));
};

const checkedOut = async ({ scene }: Waiting) => (await scene.client.get(workspaces, scene.ref("web"))).spec?.git?.ref;

test(
  "a plan and its approval stay when the new commit has the same content, and the status ends at that commit",
  async () => {
    await using stage = await waiting();
    const { server, scene, planned, request } = stage;
    const since = (await scene.get("web")).status?.waiting?.since;
    const second = server.commitFiles(files);
    scene.jump(pollMs);
    const kept = await covers(stage, second);
    expect(kept.status?.approval).toEqual({ ...request, coveredCommit: second });
    expect(kept.status?.waiting?.since).toBe(since ?? "");
    expect(condition(kept, "Reconciling")?.message).toContain(`The plan also covers commit ${second}`);

    // Both are pushed between two polls.
    server.commitFiles({ ...files, "README.md": "two" });
    const reverted = server.commitFiles(files);
    scene.jump(pollMs);
    await covers(stage, reverted);
    await decide(scene, request);
    const { status } = await scene.isReady("web", reverted);
    expect(status?.lastUpdate).toMatchObject({ lastAttemptedCommit: reverted, lastSuccessfulCommit: reverted });
    expect(status?.approval).toMatchObject({ state: "Approved", coveredCommit: reverted });
    expect(await checkedOut(stage)).toBe(planned);
    scene.jump(pollMs);
    await scene.fence();
    expect(scene.runs).toEqual([`preview@${planned}`, `up@${reverted}`]);
    expect(scene.simulator.runs[1]?.spec.applyPlan?.updateName).toBe(request.updateName);
  },
  testTimeoutMs,
);

test(
  "a plan stays when the new commit changes nothing that pathFilters select, and is applied at its own commit",
  async () => {
    await using stage = await waiting({ pathFilters: ["infra/**"] });
    const { server, scene, planned, request } = stage;
    const second = server.commitFiles({ ...files, "README.md": "two" });
    scene.jump(pollMs);
    await covers(stage, second);
    await decide(scene, request);
    await scene.isReady("web", second);
    expect(await checkedOut(stage)).toBe(planned);
    const third = server.commitFiles({ ...files, "README.md": "three" });
    scene.jump(pollMs);
    await scene.becomes("web", `past ${third}`, ({ status }) => status?.skippedCommit?.commit === third);
    expect(scene.runs).toEqual([`preview@${planned}`, `up@${second}`]);
  },
  testTimeoutMs,
);

test(
  "a plan is superseded when the new commit has another content",
  async () => {
    await using stage = await waiting();
    const { server, scene, planned, request } = stage;
    const second = server.commitFiles({ ...files, "README.md": "two" });
    scene.jump(pollMs);
    await isSuperseded(stage);
    await decide(scene, request);
    await scene.fence();
    expect(scene.runs).toEqual([`preview@${planned}`, `preview@${second}`]);
  },
  testTimeoutMs,
);

test(
  "a plan is superseded when the Git server cannot compare the commits",
  async () => {
    await using stage = await waiting();
    stage.server.git("config", "uploadpack.allowFilter", "false");
    const { server, scene, planned } = stage;
    // What the server supports is read again after ten minutes.
    scene.jump(600_000);
    const second = server.commitFiles(files);
    scene.jump(pollMs);
    await isSuperseded(stage);
    expect(scene.runs).toEqual([`preview@${planned}`, `preview@${second}`]);
    await waitFor(
      async () => (await eventMessages(scene)).some((text) => text.includes("commits cannot be compared")),
      {
        what: "an event that says why",
      },
    );
  },
  testTimeoutMs,
);

test(
  "a plan waits while the Git server fails to compare the commits, and is superseded if that does not end",
  async () => {
    await using stage = await waiting();
    const { server, scene, planned, request } = stage;
    const isReported = (commit: string) => (stack: Stack) =>
      condition(stack, "Reconciling")?.message.includes(`also covers commit ${commit} is not known`) === true;
    server.fetchStatus = 503;
    const second = server.commitFiles(files);
    scene.jump(pollMs);
    const kept = await scene.becomes("web", "at a plan that cannot be compared", isReported(second));
    expect(reasonOf(kept)).toBe("AwaitingApproval");
    expect(kept.status?.approval).toEqual(request);
    server.fetchStatus = undefined;
    scene.jump(pollMs);
    await covers(stage, second);

    server.fetchStatus = 503;
    const third = server.commitFiles(files);
    scene.jump(pollMs);
    await scene.becomes("web", "at a plan that cannot be compared again", isReported(third));
    const attempts = server.requests.length;
    await waitFor(
      async () => {
        scene.jump(pollMs);
        return (await scene.get("web")).status?.approval?.updateName !== request.updateName;
      },
      { timeoutMs: 60_000, what: "another plan" },
    );
    expect(server.requests.length).toBeGreaterThan(attempts);
    await isSuperseded(stage);
    expect(scene.runs).toEqual([`preview@${planned}`, `preview@${third}`]);
  },
  testTimeoutMs,
);

test(
  "a rejection stays when the new commit has the same content, also after a restart without a comparison",
  async () => {
    await using stage = await waiting();
    const { server, scene, planned, request } = stage;
    await decide(scene, request, { decision: "Reject" });
    await scene.becomes("web", "rejected", (stack) => reasonOf(stack) === "ApprovalRejected");
    const second = server.commitFiles(files);
    scene.jump(pollMs);
    await covers(stage, second);
    await scene.stop();
    server.git("config", "uploadpack.allowFilter", "false");
    const polls = server.requests.length;
    scene.start();
    await waitFor(() => server.requests.length > polls + 1, { what: "the repository to be polled" });
    await scene.fence();
    expect(reasonOf(await scene.get("web"))).toBe("ApprovalRejected");
    expect(scene.runs).toEqual([`preview@${planned}`]);
  },
  testTimeoutMs,
);

test(
  "an old plan that was rejected does not make a commit run that pathFilters leave out",
  async () => {
    const password = (value: string) => ({
      apiVersion: "v1",
      kind: "Secret",
      metadata: scene.ref("database"),
      stringData: { password: value },
    });
    const write = (value: string) => scene.client.apply(builtin.secrets, password(value), { fieldManager: "test" });
    using server = gitServer();
    server.git("config", "uploadpack.allowFilter", "true");
    const deployed = server.commitFiles(files);
    await using scene = await StackScene.open();
    await write("good");
    const secretsRef = { password: { type: "Secret", secret: { name: "database", key: "password" } } };
    const spec = { projectRepo: server.url, branch: "main", approval: { required: "Always" }, secretsRef } as const;
    await scene.stack("web", { ...spec, pathFilters: ["infra/**"] });
    const isAwaiting = async (former?: string) => {
      const isNew = (stack: Stack): boolean =>
        reasonOf(stack) === "AwaitingApproval" && stack.status?.approval?.updateName !== former;
      const { status } = await scene.becomes("web", "awaiting an approval", isNew);
      if (!status?.approval) throw new Error("there is no request");
      return status.approval;
    };
    const first = await isAwaiting();
    await decide(scene, first);
    await scene.isReady("web", deployed);
    await write("bad");
    scene.jump(70_000);
    await decide(scene, await isAwaiting(first.updateName), { decision: "Reject" });
    await scene.becomes("web", "rejected", (stack) => reasonOf(stack) === "ApprovalRejected");
    await write("good");
    scene.jump(70_000);
    await scene.isReady("web", deployed);
    const { runs } = scene;
    const left = server.commitFiles({ ...files, "README.md": "two" });
    scene.jump(pollMs);
    await scene.becomes("web", `past ${left}`, ({ status }) => status?.skippedCommit?.commit === left);
    expect(scene.runs).toEqual(runs);
  },
  testTimeoutMs,
);
