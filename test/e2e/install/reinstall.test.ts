/**
 * Updates run while the operator is reinstalled, while its CA is rotated, and while its CA is lost. Each starts once, and
 * its result is recorded once, in the pod in which it started.
 */
import { beforeAll, describe, expect, test } from "bun:test";

import { caRotationRequestAnnotation, caSecretName, isComplete } from "@pko/api";
import { builtin } from "@pko/kube";
import { splitBundle } from "@pko/rpc";
import { waitFor } from "@pko/testkit";

import {
  agentLog,
  applyTo,
  assertCleanLogs,
  at,
  CliUser,
  failedReason,
  getStack,
  isReady,
  kubectl,
  listUpdates,
  newProgram,
  newStack,
  podUid,
  readSecret,
  requestReconcile,
  stackUntil,
  startStatePod,
  useScene,
} from "../harness.ts";
import { helm } from "./helm.ts";
import { chartValues, installChart, release, uninstallAfter } from "./release.ts";

const slow = 400_000;
const scene = useScene("reinstall", { operator: "none" });
const home = `reinstall-${crypto.randomUUID().slice(0, 8)}`;
const names = Array.from({ length: 3 }, (_, index) => `slow-${index + 1}`);
let values: string[];
const pods = new Map<string, string>();

describe("three running updates", () => {
  beforeAll(async () => {
    values = await chartValues(home, scene);
    uninstallAfter(scene, home);
    await Promise.all([installChart(home, values), startGates()]);
    await applyTo(scene, ...names.map(slowProgram), ...names.map(slowStack));
    await waitForStarts(1);
    for (const name of names) pods.set(name, await podUid(scene, name));
  }, slow);

  test(
    "survive a reinstallation of the chart, and so does the CA",
    async () => {
      const before = await caData();
      await assertCleanOperatorLogs();
      await helm("uninstall", release, "-n", home, "--wait");
      await installChart(home, values);
      await expectRecordedOnce(1);
      expect(await caData()).toEqual(before);
      await assertCleanOperatorLogs();
    },
    slow,
  );

  test(
    "survive a requested rotation of the CA",
    async () => {
      await startAll("rotated", 2);
      await kubectl(["annotate", "secret", caSecretName, "-n", home, `${caRotationRequestAnnotation}=now`]);
      await waitFor(async () => (await trustedCaCounts()).every((count) => count === 2), {
        timeoutMs: slow / 2,
        what: "both CAs in the Secret of every Workspace",
      });
      await expectRecordedOnce(2);
      await assertCleanOperatorLogs();
    },
    slow,
  );

  test(
    "survive the loss of the CA while the operator is down",
    async () => {
      await startAll("lost", 3);
      const before = await caData();
      const deployment = ["deployment", `${home}-controller-manager`, "-n", home];
      await kubectl(["scale", ...deployment, "--replicas=0"]);
      const ofOperator = ["-l", `app.kubernetes.io/instance=${release}`, "-n", home];
      await kubectl(["wait", "pod", "--for=delete", ...ofOperator, "--timeout=120s"]);
      const why = await new CliUser(() => scene).why(names[0] ?? "", "--operator-namespace", home);
      expect(why.cause).toBe("operatorDown");
      await kubectl(["delete", "secret", caSecretName, "-n", home]);
      await kubectl(["scale", ...deployment, "--replicas=1"]);
      await expectRecordedOnce(3);
      expect(await caData()).not.toEqual(before);
      await assertCleanOperatorLogs();
    },
    slow,
  );
});

/** Call this before the pod is deleted, because it reads its log. */
const assertCleanOperatorLogs = (): Promise<void> => assertCleanLogs(home, `app.kubernetes.io/instance=${release}`);

/** A program that reads a named pipe, and so waits until the test writes to it. */
const slowProgram = (name: string): object =>
  newProgram(name, {
    variables: { text: { "fn::readFile": `/state/gate-${name}` } },
    resources: { kept: { type: "pulumi:index:Stash", properties: { input: "${text}" } } },
    outputs: { text: "${text}" },
  });

const slowStack = (name: string): object => newStack(name, { programRef: { name } });

/** Starts a pod on the same volume that creates the pipes. */
async function startGates(): Promise<void> {
  const paths = names.map((name) => `/state/gate-${name}`).join(" ");
  const command = ["sh", "-c", `mkfifo -m 666 ${paths}; exec sleep 1000000`];
  await startStatePod(scene, { name: "gates", command });
}

async function openGates(): Promise<void> {
  const script = names.map((name) => `echo go > /state/gate-${name}`).join(" && ");
  await kubectl(["exec", "gates", ...at(scene), "--", "timeout", "300", "sh", "-c", script]);
}

async function startAll(request: string, starts: number): Promise<void> {
  await Promise.all(names.map((name) => requestReconcile(scene, name, request)));
  await waitForStarts(starts);
}

/** The number of runs that the agent has logged. */
async function countStarts(name: string): Promise<number> {
  return (await agentLog(scene, name)).match(/run started/g)?.length ?? 0;
}

async function waitForStarts(starts: number): Promise<void> {
  const isRunning = async (name: string): Promise<boolean> =>
    (await listUpdates(scene, name)).filter(({ status }) => status?.process !== undefined).length === starts;
  await waitFor(async () => (await Promise.all(names.map(isRunning))).every(Boolean), {
    timeoutMs: slow / 2,
    pollMs: 500,
    what: `start ${starts} of every update`,
  });
}

/** Lets the updates finish. Each Stack must have this many Updates, all successful, each started once, in the first pod. */
async function expectRecordedOnce(updates: number): Promise<void> {
  await openGates();
  for (const name of names) {
    await stackUntil(scene, name, (stack) => isReady(stack) && stack.status?.lastUpdate?.state === "succeeded");
    await waitFor(async () => (await updateResults(name)).every((result) => result !== undefined), {
      timeoutMs: slow / 2,
    });
    expect(await updateResults(name)).toEqual(Array.from({ length: updates }, () => "UpdateSucceeded"));
    expect(await countStarts(name)).toBe(updates);
    expect(await podUid(scene, name)).toBe(pods.get(name) ?? "");
    expect((await getStack(scene, name)).status?.outputs).toEqual({ text: "go\n" });
  }
}

/** The result of each Update of the Stack; undefined for an Update that is not complete. */
async function updateResults(name: string): Promise<(string | undefined)[]> {
  const all = await listUpdates(scene, name);
  return all.map((update) => (isComplete(update) ? failedReason(update) : undefined));
}

async function caData(): Promise<object> {
  return (await scene.client.get(builtin.secrets, { namespace: home, name: caSecretName })).data ?? {};
}

/** How many CAs the agent of each Workspace trusts. */
async function trustedCaCounts(): Promise<number[]> {
  const bundles = await Promise.all(names.map((name) => readSecret(scene, `${name}-workspace-tls`)));
  return bundles.map(({ "ca.crt": bundle = "" }) => splitBundle(bundle).length);
}
