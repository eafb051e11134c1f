/**
 * Stacks in trouble, with a real Stack controller: its metrics raise exactly the alerts that they should, and the commands
 * of the runbooks resolve them.
 */
import { driftRequestAnnotation, type Stack, type Update } from "@pko/api";
import { builtin } from "@pko/kube";
import type { PolicyProbe } from "@pko/operator";
import { waitFor } from "@pko/testkit";
import { expect, test } from "bun:test";

import { commandsIn } from "../../docs/commands.ts";
import { readRunbook } from "../../docs/runbook.ts";
import { apiServerWithApi, stacks } from "../api/install.ts";
import { policyInForce } from "../approvals/decide.ts";
import { Shell } from "../docs/shell.ts";
import { gitServer, type GitServer } from "../stack/git-server.ts";
import { condition, reasonOf, StackScene, testTimeoutMs } from "../stack/scene.ts";
import { renderRules, testRules, type Rules } from "./promtool.ts";
import { recordedSeries, type Scrape } from "./recorded-series.ts";

const hour = 3_600_000;
const minute = 60_000;

/** The durations that are longer than a few hours. */
const shortened = { awaitingApprovalFor: "1h", suspendedFor: "1h" };
/** The troubles last for so long. */
const held = { interval: "10m", intervals: 30, at: "4h" };

const scrape = (scene: StackScene): Scrape => ({ text: scene.operator.metrics.expose(), atMs: scene.clock.now() });

const policyMissing: PolicyProbe = { ...policyInForce, state: () => ({ kind: "missing", policy: "approvals" }) };

test(
  "Stacks that need a missing admission policy, or wait for a slot, raise alerts",
  async () => {
    await using scene = await StackScene.open({
      approvalPolicy: policyMissing,
      limits: { total: 1, inNamespace: () => 1 },
    });
    await scene.program("program");
    scene.simulator.script.update = () => ({ end: "never" });
    await scene.stack("unprotected", { approval: { required: "Always" } });
    await scene.stack("one");
    await scene.becomes("one", "updating", ({ status }) => Boolean(status?.currentUpdate));
    await scene.stack("two");
    await scene.becomes("two", "waiting", (stack) => reasonOf(stack) === "WaitingForSlot");
    await scene.becomes("unprotected", "stalled", (stack) => reasonOf(stack) === "ApprovalPolicyMissing");
    const { store } = scene.operator.stores.stacks;
    const isSeen = (name: string, reason: string): boolean => {
      const stack = store.get(`${scene.namespace}/${name}`);
      return stack !== undefined && reasonOf(stack) === reason;
    };
    const areSeen = (): boolean => isSeen("two", "WaitingForSlot") && isSeen("unprotected", "ApprovalPolicyMissing");
    await waitFor(areSeen, { what: "the statuses in the store, of which the metrics are" });
    const { interval, intervals, at } = held;
    const series = recordedSeries([scrape(scene), scrape(scene)], intervals);
    const firing = { PulumiApprovalPolicyMissing: 1, PulumiUpdatesWaiting: 1, PulumiStackStuck: 2 };
    await testRules(await renderRules(), [{ name: "waiting", series, at, firing, exactly: true }], interval);
  },
  testTimeoutMs,
);

async function isStoreCurrent({ client, namespace, operator }: StackScene): Promise<boolean> {
  const { store } = operator.stores.stacks;
  const { items } = await client.list(stacks, { namespace });
  return items.every(({ metadata: { name, resourceVersion } }) => {
    return store.get(`${namespace}/${name}`)?.metadata.resourceVersion === resourceVersion;
  });
}

interface Trouble {
  readonly scene: StackScene;
  readonly rules: Rules;
  readonly git: GitServer;
}

/** Prometheus evaluates the rules with what the operator exposes, before and after one more poll of the repository. */
async function expectAlerts(
  { scene, rules, git }: Trouble,
  name: string,
  firing: Readonly<Record<string, number>>,
): Promise<void> {
  const first = scrape(scene);
  const polls = git.requests.length;
  scene.jump(20 * minute);
  await waitFor(() => git.requests.length > polls, { what: "the repository to be polled again", timeoutMs: 45_000 });
  await scene.fence();
  // Their retries have ended.
  for (const each of ["broken", "slow"]) {
    await scene.becomes(each, "at rest", (stack) => reasonOf(stack) !== "StackProcessing");
  }
  await waitFor(async () => isStoreCurrent(scene), { what: "the statuses in the store, of which the metrics are" });
  const { interval, intervals, at } = held;
  const series = recordedSeries([first, scrape(scene)], intervals);
  // A pass that is running when the clock jumps exceeds its deadline.
  const artifacts = ['name="fence-', "controller_runtime_reconcile_errors_total"];
  const genuine = Object.entries(series).filter(([each]) => !artifacts.some((artifact) => each.includes(artifact)));
  await testRules(rules, [{ name, series: Object.fromEntries(genuine), at, firing, exactly: true }], interval);
}

const isCheck = ({ spec }: Update): boolean => spec?.type === "refresh" && spec.previewOnly === true;
const urn = "urn:pulumi:dev::demo::kubernetes:core/v1:ConfigMap::settings";
const drift = { resources: [{ urn, operation: "update", properties: ["data.mode"] }] };

/** What the updates of each Stack do. The first one of `hanging` never ends, unless it is cancelled. */
function play(scene: StackScene, isFixed: boolean): void {
  scene.simulator.script.update = (update) => {
    const stack = update.spec?.workspaceName ?? "";
    const isFirst = scene.simulator.runs.find(({ spec }) => spec.workspaceName === stack)?.uid === update.metadata.uid;
    if (stack === "hanging" && isFirst) return { end: "never" };
    if (isFixed) return { end: "succeeded", ...(isCheck(update) && { drift: { resources: [] } }) };
    if (stack === "slow") return { end: "failed", message: "exceeded its timeout", errorClass: "timedOut" };
    if (stack === "broken" || stack === "exhausted") return { end: "failed", message: "no such bucket" };
    if (stack === "unchecked" && isCheck(update)) return { end: "failed", message: "access denied" };
    return { end: "succeeded", ...(isCheck(update) && { drift }) };
  };
}

async function createTroubles({ scene, git }: Trouble): Promise<void> {
  const gitAuth = { accessToken: { type: "Secret", secret: { name: "git-token", key: "accessToken" } } };
  const metadata = scene.ref("git-token");
  const token = { apiVersion: "v1", kind: "Secret", metadata, stringData: { accessToken: "expired" } };
  await scene.client.create(builtin.secrets, token);
  await scene.program("program");
  await scene.stack("fine");
  await scene.stack("broken");
  await scene.stack("exhausted", { maxFailures: 1 });
  await scene.stack("slow", { updateTimeoutSeconds: 60 });
  await scene.stack("hanging");
  await scene.stack("drifted");
  await scene.stack("unchecked", { driftDetection: { intervalSeconds: 3600 } });
  await scene.stack("stopped", { suspend: true });
  await scene.stack("planned", { approval: { required: "Always" } });
  await scene.stack("next", { prerequisites: [{ name: "planned" }] });
  await scene.stack("last", { prerequisites: [{ name: "next" }] });
  await scene.stack("locked-out", { projectRepo: git.url, branch: "main", gitAuth });
}

const failures = ({ status }: Stack): number => status?.lastUpdate?.failures ?? 0;

async function areInTrouble({ scene }: Trouble): Promise<void> {
  await scene.isReady("drifted");
  await scene.annotate("drifted", { [driftRequestAnnotation]: "now" });
  await scene.becomes("slow", "failed", (stack) => failures(stack) > 0);
  scene.jump(hour);
  await scene.becomes("slow", "failed twice", (stack) => failures(stack) > 1);
  await scene.becomes("broken", "failed", (stack) => failures(stack) > 0);
  await scene.becomes("drifted", "drifted", (stack) => condition(stack, "Drifted")?.status === "True");
  await scene.becomes("hanging", "updating", ({ status }) => Boolean(status?.currentUpdate));
  for (const failures of [1, 2]) {
    await scene.annotate("unchecked", { [driftRequestAnnotation]: String(failures) });
    await scene.becomes("unchecked", "not checked", ({ status }) => (status?.drift?.failures ?? 0) >= failures);
  }
  const reasons = {
    exhausted: "RetriesExhausted",
    stopped: "Suspended",
    planned: "AwaitingApproval",
    next: "PrerequisiteNotSatisfied",
    last: "PrerequisiteNotSatisfied",
    "locked-out": "SourceUnavailable",
  };
  for (const [name, reason] of Object.entries(reasons)) {
    await scene.becomes(name, reason, (stack) => reasonOf(stack) === reason);
  }
}

/** Runs the commands below "Fix" of an alert's runbook for a Stack. */
async function fix({ scene }: Trouble, alert: string, stack: string): Promise<void> {
  const commands = commandsIn(readRunbook(alert).Fix);
  expect(commands).not.toEqual([]);
  using shell = new Shell(await apiServerWithApi());
  for (const line of commands) await shell.run(line.replaceAll("website", stack).replaceAll("team-a", scene.namespace));
}

test(
  "Stacks in trouble raise an alert each, and the commands of the runbooks resolve them",
  async () => {
    using git = gitServer();
    git.commit();

    git.credentials = "git:renewed";
    await using scene = await StackScene.open();
    const trouble: Trouble = { scene, git, rules: await renderRules(shortened) };
    play(scene, false);
    await createTroubles(trouble);
    await areInTrouble(trouble);
    await expectAlerts(trouble, "in trouble", {
      PulumiStackFailing: 3, // broken, exhausted and slow
      PulumiStackRetriesExhausted: 1,
      PulumiStackTimingOut: 1,
      PulumiStackStuck: 1, // hanging, not next and last, which wait for the approval of planned
      PulumiStackDrifted: 1,
      PulumiDriftChecksFailing: 1,
      PulumiStackSuspended: 1,
      PulumiStackAwaitingApproval: 1,
      PulumiStackStalled: 1, // locked-out
      PulumiGitHostFailing: 1,
    });

    play(scene, true);
    await fix(trouble, "PulumiStackFailing", "broken");
    await fix(trouble, "PulumiStackRetriesExhausted", "exhausted");
    await fix(trouble, "PulumiStackTimingOut", "slow");
    await fix(trouble, "PulumiStackStuck", "hanging");
    await fix(trouble, "PulumiStackDrifted", "drifted");
    await fix(trouble, "PulumiDriftChecksFailing", "unchecked");
    await fix(trouble, "PulumiStackSuspended", "stopped");
    await fix(trouble, "PulumiStackStalled", "locked-out");
    scene.jump(20 * minute);
    for (const name of ["broken", "exhausted", "slow", "hanging", "drifted", "stopped", "locked-out"]) {
      await scene.isReady(name);
    }
    for (const name of ["drifted", "unchecked"]) {
      await scene.becomes(name, "without drift", (stack) => condition(stack, "Drifted")?.status === "False");
    }
    await expectAlerts(trouble, "fixed", { PulumiStackAwaitingApproval: 1 });
  },
  testTimeoutMs * 2,
);
