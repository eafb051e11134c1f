/**
 * A real Prometheus scrapes a real operator in trouble: alerts fire, with durations of seconds, and are resolved by what the
 * runbooks say. promtool tests the durations that are shipped (rules.test.ts).
 */
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { reconcileRequestAnnotation, suspendAnnotation, leaseName } from "@pko/api";
import { builtin } from "@pko/kube";
import { stacks } from "@pko/operator";
import { waitFor } from "@pko/testkit";
import { afterAll, beforeAll, test } from "bun:test";

import { gitServer } from "../stack/git-server.ts";
import { AlertStage } from "./alert-stage.ts";

const testTimeoutMs = 400_000;
/** They take four minutes, most of which is waiting. */
const isRequested = process.env["ALERTS"] === "1";
const onRequest = test.if(isRequested);

let stage: AlertStage;
beforeAll(async () => {
  if (isRequested) stage = await AlertStage.open();
}, testTimeoutMs);
afterAll(async () => {
  if (isRequested) await stage[Symbol.asyncDispose]();
}, testTimeoutMs);

async function requestUpdate(name: string, value: string): Promise<void> {
  const { client, name: namespace } = stage.place;
  const body = { metadata: { annotations: { [reconcileRequestAnnotation]: value } } };
  await client.patch(stacks, { namespace, name }, { patch: { type: "merge", body } });
}

async function isRunning(name: string): Promise<boolean> {
  const { client, name: namespace } = stage.place;
  return (await client.get(stacks, { namespace, name })).status?.currentUpdate !== undefined;
}

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
    return (await stage.prometheus.firing()).includes(alert);
  };
  await waitFor(isFiring, { timeoutMs: 120_000, what: `${alert} to fire` });
}

onRequest(
  "Stacks that fail, are suspended, wait for an approval or have no access to Git",
  async () => {
    const { shop, prometheus, place } = stage;
    using git = gitServer();
    git.commitFiles({ "Pulumi.yaml": JSON.stringify({ name: "shop", runtime: "yaml", outputs: { text: "renewed" } }) });
    git.credentials = "git:renewed";
    const settings = join(stage.folder, "settings");
    const commit = shop.commit("settings", reading(settings));
    const pipe = newPipe("slow");
    await place.client.create(builtin.secrets, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { namespace: place.name, name: "git-token" },
      stringData: { accessToken: "expired" },
    });
    const gitAuth = { accessToken: { type: "Secret", secret: { name: "git-token", key: "accessToken" } } };
    await shop.apply("stopped", { commit: shop.commit("good"), suspend: true });
    await shop.apply("locked-out", { projectRepo: git.url, gitAuth });
    await shop.apply("failing", { commit });
    await shop.apply("exhausted", { commit, maxFailures: 1 });
    await shop.apply("slow", { commit: shop.commit("slow", reading(pipe)), updateTimeoutSeconds: 5 });
    await prometheus.untilFiring(
      "PulumiStackSuspended stopped",
      "PulumiStackStalled locked-out",
      "PulumiStackFailing failing",
      "PulumiStackRetriesExhausted exhausted",
      "PulumiStackFailing slow",
    );
    // Two updates in a row exceed their timeout.
    await requestUpdate("slow", "again");
    await prometheus.untilFiring("PulumiStackTimingOut slow");
    await untilFiring("PulumiGitHostFailing", (turn) => requestUpdate("locked-out", String(turn)));

    writeFileSync(settings, "present");
    await stage.fix("PulumiStackTimingOut", "slow", () => replacePipe(pipe));
    await stage.fix("PulumiStackSuspended", "stopped");
    await stage.fix("PulumiStackFailing", "failing");
    await stage.fix("PulumiStackRetriesExhausted", "exhausted");
    await stage.fix("PulumiGitHostFailing", "locked-out");
    await prometheus.untilResolved(
      "PulumiStackSuspended stopped",
      "PulumiStackStalled locked-out",
      "PulumiStackFailing failing",
      "PulumiStackRetriesExhausted exhausted",
      "PulumiStackTimingOut slow",
      "PulumiGitHostFailing",
    );
    await shop.apply("planned", { commit, approval: { required: "Always" } });
    await prometheus.untilFiring("PulumiStackAwaitingApproval planned");
    await stage.fix("PulumiStackAwaitingApproval", "planned");
    await prometheus.untilResolved("PulumiStackAwaitingApproval planned");
  },
  testTimeoutMs,
);

onRequest(
  "an update that hangs, a pod that does not start, and updates that wait for them",
  async () => {
    const { shop, prometheus, pending, place } = stage;
    const pipe = newPipe("hanging");
    const commit = shop.commit("good");
    pending.add("pending");
    await shop.apply("pending", { commit });
    await shop.apply("hanging", { commit: shop.commit("hanging", reading(pipe)) });
    await prometheus.untilFiring("PulumiWorkspacePodPending pending", "PulumiStackStuck hanging");
    await shop.apply("waiting", { commit });
    await prometheus.untilFiring("PulumiUpdatesWaiting");

    // The alert may fire before: a Workspace that is prepared for long is stuck, too.
    await waitFor(() => isRunning("hanging"), { timeoutMs: 120_000, what: "the run that hangs" });
    await stage.fix("PulumiStackStuck", "hanging", () => replacePipe(pipe));
    pending.delete("pending");
    await place.client.delete(builtin.pods, { namespace: place.name, name: "pending-workspace-0" });
    await prometheus.untilResolved(
      "PulumiWorkspacePodPending pending",
      "PulumiStackStuck hanging",
      "PulumiUpdatesWaiting",
    );
  },
  testTimeoutMs,
);

onRequest(
  "an operator that is suspended, whose requests fail, that receives no changes, that does not lead or does not run",
  async () => {
    const { prometheus, proxy, place } = stage;
    const lease = { namespace: place.name, name: leaseName };
    const body = { metadata: { annotations: { [suspendAnnotation]: "maintenance" } } };
    await place.client.patch(builtin.leases, lease, { patch: { type: "merge", body } });
    await prometheus.untilFiring("PulumiOperatorSuspended");
    await stage.fix("PulumiOperatorSuspended");
    await prometheus.untilResolved("PulumiOperatorSuspended");

    const allowWrites = proxy.on(({ isWrite, resource }) =>
      isWrite && resource === "stacks" ? { status: 403 } : undefined,
    );
    await untilFiring("PulumiOperatorErrors", (turn) => requestUpdate("failing", `rejected-${turn}`));
    await prometheus.untilFiring("PulumiOperatorRequestsRejected");
    allowWrites();
    const allowReads = proxy.on(({ isWrite, resource }) =>
      !isWrite && resource === "stacks" ? { status: 403 } : undefined,
    );
    proxy.cut();
    await prometheus.untilFiring("PulumiOperatorOutOfStep");
    allowReads();
    await prometheus.untilResolved("PulumiOperatorErrors", "PulumiOperatorRequestsRejected", "PulumiOperatorOutOfStep");

    await stage.killOperator();
    await prometheus.untilFiring("PulumiOperatorDown");
    await stage.holdLease(3600);
    stage.startOperator();
    await prometheus.untilResolved("PulumiOperatorDown");
    await prometheus.untilFiring("PulumiOperatorNoLeader");
    await stage.holdLease(1);
    await prometheus.untilResolved("PulumiOperatorNoLeader");
  },
  testTimeoutMs,
);
