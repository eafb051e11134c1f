/** The console against the real operator: one Stack in the browser, from its creation to a plan that is approved there. */
import { clusterKubeconfig } from "@pko/cluster";
import { startConsole } from "@pko/console";
import { kubeconfigCredentials } from "@pko/kube";
import { waitFor } from "@pko/testkit";
import { beforeAll, expect, test } from "bun:test";

import { launchBrowser, Visitor } from "../../browser/visitor.ts";
import {
  agentLog,
  applyTo,
  execInPod,
  filesProject,
  getStack,
  isReady,
  newStack,
  onlyOnRequest,
  stackUntil,
  untilApprovalsAreChecked,
  useScene,
} from "../harness.ts";

const slow = 600_000;
/** Shorter than a test, whose timeout does not show the page. */
const runMs = 240_000;
const scene = useScene("console");
let user: Visitor;
let commit: (program: string) => string;

const canary = "hunter2";
/** A secret in an output and in a resource, another one in each commit. */
const secrets = (value: string): string =>
  `exports.text = "hello"; exports.password = pulumi.secret("${value}"); new File("key", exports.password);`;
const stack = (spec: object = {}): object => newStack("web", { ...scene.git.source("web"), ...onlyOnRequest, ...spec });
const address = (tab = ""): string => `/stacks/${scene.namespace}/web${tab}`;

beforeAll(async () => {
  const repository = scene.git.create("web");
  let commits = 0;
  commit = (program) => repository.commit(filesProject(`${program}\n${secrets(`${canary}-${++commits}`)}`));
  const credentials = await kubeconfigCredentials([clusterKubeconfig()]);
  const started = await startConsole({ signIn: { mode: "kubeconfig", credentials }, port: 0 });
  scene.defer(() => started.stop());
  const browser = await launchBrowser();
  scene.defer(() => browser.close());
  user = new Visitor(await browser.newPage(), new URL(started.url).origin);
  await user.page.goto(started.url);
  await user.page.getByRole("heading", { level: 1, name: "Stacks" }).waitFor();
}, slow);

/** Requests an update by the button, and waits until the page shows it. */
async function requestUpdate(): Promise<void> {
  await user.confirm("Reconcile");
  await user.untilText("Requested an update of Stack web.");
}

async function expectNoSecret(): Promise<void> {
  expect(await user.page.content()).not.toContain(canary);
}

test(
  "a Stack is followed from its creation through its run to its outputs, without a reload",
  async () => {
    await user.open(address(), "web");
    await user.untilText(`There is no Stack web in namespace ${scene.namespace}.`);
    commit('new File("a", "one"); new File("b", "two");');
    await applyTo(scene, stack());
    await user.page.getByText("Ready", { exact: true }).first().waitFor({ timeout: runMs });
    await user.follow("Outputs");
    await user.untilText("hello");
    await user.untilText("secret: its value is not shown");
    await expectNoSecret();
    await user.follow("Runs");
    await user.follow(/^web-/);
    await user.untilText("succeeded");
    await user.follow("Log");
    await user.untilText("Updating (web):");
    await expectNoSecret();
  },
  slow,
);

test(
  "a resource that was changed outside of Pulumi is found by a check, and shown with its properties",
  async () => {
    await execInPod(scene, "web", "printf changed > /state/a");
    await user.open(address("/drift"), "web");
    await user.confirm("Check drift");
    await user.untilText(/a pulumi-nodejs:dynamic:Resource changed content/, runMs);
    await user.untilText("Drifted");
  },
  slow,
);

test(
  "a failure is shown with its cause, and its run is compared with the one before",
  async () => {
    const succeeded = (await getStack(scene, "web")).status?.lastUpdate?.name ?? "";
    commit('new File("a", "one"); new File("b", "two"); new File("c", "broken");');
    await user.open(address(), "web");
    await requestUpdate();
    await user.untilText("RetryingAfterFailure", runMs);
    await user.untilText("the disk is on fire");
    await user.follow("Runs");
    const failed = await user.text(user.page.getByRole("row").filter({ hasText: "failed" }).first().getByRole("link"));
    await user.page.getByLabel(`Compare ${failed}`).check();
    await user.page.getByLabel(`Compare ${succeeded}`).check();
    await user.page.getByRole("button", { name: "Compare two runs" }).click();
    await user.untilText(/Result succeeded failed .*different/);
    await user.untilText(/c pulumi-nodejs:dynamic:Resource not part of it create failed/);
    await expectNoSecret();
    await user.follow(failed);
    await user.follow("Diagnostics");
    await user.untilText("the disk is on fire");
    await expectNoSecret();
  },
  slow,
);

test(
  "a running update is followed live, and cancelled",
  async () => {
    const held = commit('new File("a", "one"); new File("b", "two"); new File("c", "held");');
    await user.open(address(), "web");
    await requestUpdate();
    // A retry of the failed update may still be running.
    const { status } = await stackUntil(scene, "web", (each) => each.status?.currentUpdate?.commit === held);
    await user.follow(status?.currentUpdate?.name ?? "");
    await user.untilText(/c pulumi-nodejs:dynamic:Resource \+ create running/, runMs);
    await expectNoSecret();
    await user.follow(/^web$/);
    await user.confirm("Cancel update");
    await user.untilText("Requested the cancellation of Update");
    // Otherwise the update may succeed before it is cancelled.
    await waitFor(async () => (await agentLog(scene, "web")).includes("cancelling the run"), {
      timeoutMs: runMs,
      what: "the agent to cancel the run",
    });
    // Pulumi waits for what its provider has started.
    await execInPod(scene, "web", "touch /state/release");
    await user.untilText("was cancelled, as requested", runMs);
  },
  slow,
);

test(
  "a plan with a deletion is approved in the browser, and then applied",
  async () => {
    await untilApprovalsAreChecked(scene);
    // Before the commit, which would otherwise be deployed without a plan if the operator saw it first.
    await applyTo(scene, stack({ approval: { required: "OnDestructiveChanges" } }));
    await stackUntil(scene, "web", isReady);
    commit('new File("a", "one"); new File("c", "held");');
    await user.open(address(), "web");
    await requestUpdate();
    await user.open("/approvals", "Approvals");
    await user.page.locator(`a[href="/approvals/${scene.namespace}/web"]`).click({ timeout: runMs });
    await user.untilText("1 to delete");
    await user.untilText("delete b");
    await user.untilText("key pulumi-nodejs:dynamic:Resource");
    await expectNoSecret();
    expect(await execInPod(scene, "web", "cat /state/b")).toBe("two");
    await user.page.getByLabel("Reason").fill("b is not needed");
    await user.confirm("Approve");
    await user.untilText("The plan is approved.");
    await user.untilText("State Approved", runMs);
    const { status } = await stackUntil(scene, "web", isReady);
    expect(status?.approval).toMatchObject({ state: "Approved", reason: "b is not needed" });
    expect(status?.approval?.appliedBy).toBe(status?.lastUpdate?.name ?? "");
    expect(await execInPod(scene, "web", "test -e /state/b || echo deleted")).toBe("deleted\n");
  },
  slow,
);
