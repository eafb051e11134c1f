/**
 * A real Prometheus scrapes real operators in trouble: every alert fires, with durations of seconds, and the commands of its
 * runbook resolve it. promtool tests the durations that are shipped (rules.test.ts).
 */
import { execFileSync } from "node:child_process";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import {
  driftRequestAnnotation,
  leaseName,
  reconcileRequestAnnotation,
  suspendAnnotation,
  type LastUpdate,
} from "@pko/api";
import { builtin, mayUser, timestamp } from "@pko/kube";
import { stacks, updates } from "@pko/operator";
import { waitFor } from "@pko/testkit";
import { afterAll, beforeAll, expect, test } from "bun:test";

import { runbookSections } from "../../docs/runbook.ts";
import { gitServer } from "../stack/git-server.ts";
import { AlertStage, homeNode, lostNode } from "./alert-stage.ts";
import { release, renderRules } from "./promtool.ts";
import { unprintedLines } from "./transcripts.ts";

const timeoutMs = 240_000;
const testTimeoutMs = 4 * timeoutMs;
/** They take many minutes, most of which is waiting. */
const isRequested = process.env["ALERTS"] === "1";
const onRequest = test.if(isRequested);

let stage: AlertStage;
beforeAll(async () => {
  if (isRequested) stage = await AlertStage.open();
}, testTimeoutMs);
afterAll(async () => {
  if (isRequested) await stage[Symbol.asyncDispose]();
}, testTimeoutMs);

async function annotate(name: string, annotations: Readonly<Record<string, string>>): Promise<void> {
  const patch = { type: "merge", body: { metadata: { annotations } } } as const;
  await stage.client.patch(stacks, stage.shop.ref(name), { patch });
}

const requestUpdate = (name: string, value: string): Promise<void> =>
  annotate(name, { [reconcileRequestAnnotation]: value });

/** The Update that runs. The operator knows its process, so that it can remove its lock. */
async function runOf(name: string): Promise<string> {
  const { client, shop } = stage;
  const find = async (): Promise<string | undefined> => {
    const { status } = await client.get(stacks, shop.ref(name));
    const update = status?.currentUpdate?.name;
    const running = update === undefined ? undefined : await client.find(updates, shop.ref(update));
    return running?.status?.process === undefined ? undefined : update;
  };
  return await waitFor(find, { timeoutMs, what: `the run of Stack ${name}` });
}

/** The agent has fifteen minutes after the timeout. */
async function moveStart(update: string, ms: number): Promise<void> {
  const { client, shop } = stage;
  const { status } = await client.get(updates, shop.ref(update));
  const startTime = timestamp(Date.parse(status?.startTime ?? "") - ms);
  const patch = { type: "merge", body: { status: { startTime } } } as const;
  await client.patch(updates, shop.ref(update), { patch, subresource: "status" });
}

const untilReady = async (name: string, commit?: string): Promise<void> => {
  // The Stack is still ready with the commit before, at first.
  const isDeployed = (last: LastUpdate): boolean => commit === undefined || last.lastSuccessfulCommit === commit;
  await waitFor(() => stage.shop.isReady(name, isDeployed), { timeoutMs, what: `Stack ${name} to be ready` });
};

/** A program that reads a file. */
const reading = (file: string) => ({ kept: "${text}", variables: { text: { "fn::readFile": file } } });

/** A program that reads it waits for a writer, and there is none. */
function newPipe(name: string): string {
  const pipe = join(stage.folder, `${name}.pipe`);
  execFileSync("mkfifo", [pipe]);
  return pipe;
}

/** The next update finds a file. */
function replacePipe(pipe: string): void {
  rmSync(pipe);
  writeFileSync(pipe, "present");
}

/** Repeats a request until its alert fires: it needs several of them in a short time. */
async function untilFiring(alert: string, request: (turn: number) => Promise<void>): Promise<void> {
  let turn = 0;
  const isFiring = async (): Promise<boolean> => {
    await request(turn++);
    return await stage.prometheus.isFiring(alert);
  };
  await waitFor(isFiring, { timeoutMs, what: `${alert} to fire` });
}

/** Changes the Stacks, one after another, until it is disposed of. */
function keepChanging(names: readonly string[]): AsyncDisposable {
  const stop = new AbortController();
  const change = async (): Promise<void> => {
    for (let turn = 0; !stop.signal.aborted; turn++) {
      await requestUpdate(names[turn % names.length] ?? "", String(turn));
    }
  };
  const changing = change();
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await changing;
    },
  };
}

const upgrade = (...settings: readonly string[]): Promise<string> =>
  stage.run(
    `helm upgrade -n ${release} ${release} charts/${release} --reset-then-reuse-values ${settings.map((each) => `--set ${each}`).join(" ")}`,
  );

/** Like a role of an earlier version. */
async function removeRules(role: string, resource: string): Promise<void> {
  const text = await stage.run(`kubectl get ${role} -n ${release} -o json`);
  const { rules } = JSON.parse(text) as { rules: readonly { readonly resources: readonly string[] }[] };
  const kept = rules.filter(({ resources }) => !resources.includes(resource));
  expect(kept.length).toBeLessThan(rules.length);
  await stage.run(`kubectl patch ${role} -n ${release} --type merge -p '${JSON.stringify({ rules: kept })}'`);
  await waitFor(async () => !(await mayPatch(resource)), { timeoutMs, what: `patches of ${resource} to be denied` });
}

/** The authorizer sees a role a moment after it is written. */
async function mayPatch(path: string): Promise<boolean> {
  const [resource = "", subresource = ""] = path.split("/");
  const isLease = resource === "leases";
  return await mayUser(stage.client, {
    user: `system:serviceaccount:${release}:${release}`,
    resourceAttributes: {
      namespace: release,
      verb: "patch",
      group: isLease ? "coordination.k8s.io" : "pulumi.com",
      resource,
      subresource,
      ...(isLease && { name: leaseName }),
    },
  });
}

onRequest(
  "an operator with an old CA and a slow clock",
  async () => {
    // The operator's own certificate is renewed when the new CA signs, two hours later.
    await stage.resolve("PulumiCertificateExpiring", { subject: "ca", removeCause: () => stage.correctClock() });
  },
  testTimeoutMs,
);

onRequest(
  "a Stack with too many Updates, and one whose approvals nobody checks",
  async () => {
    const { shop } = stage;
    const commit = shop.commit("good");
    await shop.apply("busy", { commit, continueResyncOnCommitMatch: true, resyncFrequencySeconds: 1 });
    await shop.apply("planned", { commit, approval: { required: "Always" } });
    await stage.resolve("PulumiHistoryTooLarge", { stack: "busy" });
    await stage.resolve("PulumiApprovalPolicyMissing", { stack: "planned" });
    await stage.resolve("PulumiStackAwaitingApproval", { stack: "planned" });
  },
  testTimeoutMs,
);

onRequest(
  "Stacks that fail, are suspended, have drifted, or lack credentials or inputs",
  async () => {
    const { shop, client } = stage;
    using git = gitServer();
    git.commitFiles({ "Pulumi.yaml": JSON.stringify({ name: "shop", runtime: "yaml", outputs: { text: "renewed" } }) });
    git.credentials = "git:renewed";
    const settings = join(stage.folder, "settings");
    const commit = shop.commit("settings", reading(settings));
    const good = shop.commit("good");
    const pipe = newPipe("slow");
    await client.create(builtin.secrets, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: shop.ref("git-token"),
      stringData: { accessToken: "expired" },
    });
    const fromSecret = (name: string, key: string) => ({ type: "Secret", secret: { name, key } });
    await shop.apply("stopped", { commit: good, suspend: true });
    await shop.apply("locked-out", {
      projectRepo: git.url,
      gitAuth: { accessToken: fromSecret("git-token", "accessToken") },
    });
    await shop.apply("incomplete", {
      commit: good,
      envRefs: { PASSWORD: fromSecret("incomplete-settings", "password") },
    });
    await shop.apply("failing", { commit });
    await shop.apply("exhausted", { commit, maxFailures: 1 });
    await shop.apply("slow", { commit: shop.commit("slow", reading(pipe)), updateTimeoutSeconds: 5 });
    await stage.prometheus.untilFiring("PulumiStackFailing", "failing");
    await stage.prometheus.untilFiring("PulumiStackRetriesExhausted", "exhausted");
    await stage.prometheus.untilFiring("PulumiStackFailing", "slow");
    // Two updates in a row exceed their timeout.
    await requestUpdate("slow", "again");
    await stage.resolve("PulumiStackTimingOut", { stack: "slow", removeCause: () => replacePipe(pipe) });

    writeFileSync(settings, "present");
    await stage.resolve("PulumiStackFailing", { stack: "failing" });
    await stage.resolve("PulumiStackRetriesExhausted", { stack: "exhausted" });
    await stage.resolve("PulumiStackSuspended", { stack: "stopped" });
    await untilFiring("PulumiGitHostFailing", (turn) => requestUpdate("locked-out", String(turn)));
    await stage.resolve("PulumiGitHostFailing", { stack: "locked-out" });
    await stage.resolve("PulumiStackStalled", { stack: "incomplete" });
  },
  testTimeoutMs,
);

onRequest(
  "a Stack whose resources have changed without it",
  async () => {
    const { shop } = stage;
    using git = gitServer();
    const base = { type: "pulumi:pulumi:StackReference", properties: { name: "organization/shop/base" } };
    git.commitFiles({ "Pulumi.yaml": JSON.stringify({ name: "web", runtime: "yaml", resources: { base } }) });
    await shop.apply("base", { commit: shop.commit("one") });
    await untilReady("base");
    await shop.apply("drifted", { projectRepo: git.url });
    await untilReady("drifted");
    const commit = shop.commit("two");
    await shop.apply("base", { commit });
    await untilReady("base", commit);
    await annotate("drifted", { [driftRequestAnnotation]: "now" });
    await stage.resolve("PulumiStackDrifted", { stack: "drifted" });
  },
  testTimeoutMs,
);

onRequest(
  "a Stack whose resources cannot be read",
  async () => {
    const { shop, client } = stage;
    using git = gitServer();
    const shared = { type: "pulumi:pulumi:StackReference", properties: { name: "organization/shop/shared" } };
    git.commitFiles({ "Pulumi.yaml": JSON.stringify({ name: "web", runtime: "yaml", resources: { shared } }) });
    await shop.apply("shared", { commit: shop.commit("shared") });
    await untilReady("shared");
    await shop.apply("unchecked", { projectRepo: git.url, driftDetection: { intervalSeconds: 3600 } });
    await untilReady("unchecked");
    const state = join(stage.folder, "backend/.pulumi/stacks/shop/shared.json");
    renameSync(state, `${state}.moved`);
    for (const request of ["first", "second"]) {
      await annotate("unchecked", { [driftRequestAnnotation]: request });
      const isDone = async () => (await client.get(stacks, shop.ref("unchecked"))).status?.drift?.request === request;
      await waitFor(isDone, { timeoutMs, what: `the ${request} check` });
    }
    const removeCause = (): void => renameSync(`${state}.moved`, state);
    await stage.resolve("PulumiDriftChecksFailing", { stack: "unchecked", removeCause });
  },
  testTimeoutMs,
);

onRequest(
  "an update that hangs, a pod without a node, and an update that waits for them",
  async () => {
    const { shop, prometheus } = stage;
    const pipe = newPipe("hanging");
    const commit = shop.commit("good");
    const requests = { memory: "500Gi" };
    await shop.apply("pending", { commit, workspaceTemplate: { spec: { resources: { requests } } } });
    await shop.apply("hanging", { commit: shop.commit("hanging", reading(pipe)) });
    await prometheus.untilFiring("PulumiWorkspacePodPending", "pending");
    // The alert may fire before: a Workspace that is prepared for long is stuck, too.
    await runOf("hanging");
    await shop.apply("waiting", { commit });
    await stage.resolve("PulumiUpdatesWaiting", { stack: "waiting" });
    await stage.resolve("PulumiWorkspacePodPending", { stack: "pending" });
    await stage.resolve("PulumiStackStuck", { stack: "hanging", removeCause: () => replacePipe(pipe) });
  },
  testTimeoutMs,
);

onRequest(
  "an update that its agent does not stop, and one on a node that is lost",
  async () => {
    const { shop, nodes } = stage;
    const unstoppable = newPipe("unstoppable");
    const spec = { commit: shop.commit("unstoppable", reading(unstoppable)), updateTimeoutSeconds: 3600 };
    await shop.apply("unstoppable", spec);
    const update = await runOf("unstoppable");
    stage.freezeAgent("unstoppable");
    await moveStart(update, 2 * 3_600_000);
    await stage.resolve("PulumiUpdateNotStopped", {
      stack: "unstoppable",
      removeCause: () => replacePipe(unstoppable),
    });

    const stranded = newPipe("stranded");
    await nodes.setSchedulable(homeNode, false);
    await nodes.setSchedulable(lostNode, true);
    await shop.apply("stranded", { commit: shop.commit("stranded", reading(stranded)) });
    await runOf("stranded");
    await nodes.setSchedulable(homeNode, true);
    await stage.loseNode(lostNode);
    await stage.resolve("PulumiNodeLost", { stack: "stranded", removeCause: () => replacePipe(stranded) });
  },
  testTimeoutMs,
);

onRequest(
  "an operator that is suspended, that has errors, or whose roles are too old",
  async () => {
    const { client, shop, proxy } = stage;
    const lease = { namespace: release, name: leaseName };
    const body = { metadata: { annotations: { [suspendAnnotation]: "incident 42" } } };
    await client.patch(builtin.leases, lease, { patch: { type: "merge", body } });
    await stage.resolve("PulumiOperatorSuspended", { stack: "base" });

    await shop.apply("odd", { commit: shop.commit("good") });
    await untilReady("odd");
    // Like a bug in what is written for the updates of one Stack.
    const stopErrors = proxy.on(({ isWrite, path }) =>
      isWrite && path.endsWith("/workspaces/odd") ? { status: 415, reason: "UnsupportedMediaType" } : undefined,
    );
    await untilFiring("PulumiOperatorErrors", (turn) => requestUpdate("odd", String(turn)));
    await stage.resolve("PulumiOperatorErrors", { stack: "odd" });
    stopErrors();

    const role = `clusterrole ${release}-controller-manager`;
    await shop.apply("barred", { commit: shop.commit("good") });
    await untilReady("barred");
    await removeRules(role, "stacks/status");
    await untilFiring("PulumiOperatorRequestsRejected", (turn) => requestUpdate("barred", String(turn)));
    await stage.resolve("PulumiOperatorRequestsRejected", { stack: "barred" });

    await removeRules(role, "stacks");
    proxy.cut();
    await stage.resolve("PulumiOperatorOutOfStep");

    await removeRules(`role ${release}-leader-election-role`, "leases");
    await stage.run(`kubectl delete pods -n ${release} -l app.kubernetes.io/name=${release}`);
    await stage.resolve("PulumiOperatorNoLeader");
  },
  testTimeoutMs,
);

onRequest(
  "an operator that does not run, or is slow",
  async () => {
    const { shop } = stage;
    await upgrade("deploymentStrategy=Recreate", "kubeAPI.timeout=0s");
    await stage.resolve("PulumiOperatorDown");

    await upgrade("resources.limits.cpu=100m");
    await stage.run(`kubectl rollout status deployment -n ${release} --timeout=4m`);
    const many = Array.from({ length: 400 }, (_, index) => `many-${index}`);
    for (const name of many) await shop.apply(name, { suspend: true });
    await using _ = keepChanging(many);
    await stage.resolve("PulumiOperatorBehind", { subject: "stack-controller" });
  },
  testTimeoutMs,
);

onRequest("every alert has fired, and was resolved by its runbook", async () => {
  const { rules } = await renderRules();
  expect([...stage.resolved].toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
});

onRequest("the runbooks show what their commands have printed", () => {
  const lines = [...stage.resolved].flatMap((alert) =>
    runbookSections.flatMap((section) => unprintedLines(alert, section).map((line) => `${alert}, ${section}: ${line}`)),
  );
  expect(lines).toEqual([]);
});
