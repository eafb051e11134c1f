/**
 * Six updates are running while the operator is removed and installed again, while its CA is rotated, and while its CA is
 * lost: each starts once, and its result is recorded once, in the pod that it started in.
 */
import { beforeAll, describe, expect, test } from "bun:test";

import { caRotationRequestAnnotation, caSecretName } from "@pko/api";
import { builtin } from "@pko/kube";
import { splitBundle } from "@pko/rpc";
import { waitFor } from "@pko/testkit";

import {
  agentLog,
  applyTo,
  at,
  getStack,
  isReady,
  kubectl,
  podOf,
  programOf,
  publishedImage,
  reconcile,
  removeNamespace,
  stackOf,
  stackUntil,
  updatesOf,
  useScene,
} from "../harness.ts";
import { chart, helm } from "./helm.ts";

const slow = 400_000;
const release = "pulumi-kubernetes-operator";
const scene = useScene("reinstall", { operator: "none" });
const home = `reinstall-${crypto.randomUUID().slice(0, 8)}`;
const names = Array.from({ length: 6 }, (_, index) => `slow-${index + 1}`);
let values: string[];
const pods = new Map<string, string>();

describe("six updates that are running", () => {
  beforeAll(async () => {
    const [repository = "", tag = ""] = (await publishedImage()).replace("docker.io/", "").split(":");
    const settings = {
      "image.repository": repository,
      "image.tag": tag,
      watchNamespaces: `{${scene.namespace}}`,
      "crds.upgrade": "false",
      fullnameOverride: home,
    };
    values = Object.entries(settings).map(([name, value]) => `--set=${name}=${value}`);
    scene.defer(() => removeNamespace(home));
    scene.defer(() => helm("uninstall", release, "-n", home, "--ignore-not-found", "--wait"));
    await Promise.all([install(), startGates()]);
    await applyTo(scene, ...names.map(slowProgram), ...names.map(slowStack));
    await areRunning(1);
    for (const name of names) pods.set(name, await podOf(scene, name));
  }, slow);

  test(
    "survive that the chart is uninstalled and installed, and so does the CA",
    async () => {
      const before = await caData();
      await helm("uninstall", release, "-n", home, "--wait");
      await install();
      await areRecordedOnce(1);
      expect(await caData()).toEqual(before);
    },
    slow,
  );

  test(
    "survive a rotation of the CA that an administrator requests",
    async () => {
      await startAll("rotated", 2);
      await kubectl(["annotate", "secret", caSecretName, "-n", home, `${caRotationRequestAnnotation}=now`]);
      await waitFor(async () => (await bundles()).every((count) => count === 2), {
        timeoutMs: slow / 2,
        what: "both CAs in the Secret of every Workspace",
      });
      await areRecordedOnce(2);
    },
    slow,
  );

  test(
    "survive the loss of the CA with the operator that held it",
    async () => {
      await startAll("lost", 3);
      const before = await caData();
      const deployment = ["deployment", `${home}-controller-manager`, "-n", home];
      await kubectl(["scale", ...deployment, "--replicas=0"]);
      await kubectl(["wait", "pod", "--for=delete", "-l", `app.kubernetes.io/instance=${release}`, "-n", home]);
      await kubectl(["delete", "secret", caSecretName, "-n", home]);
      await kubectl(["scale", ...deployment, "--replicas=1"]);
      await areRecordedOnce(3);
      expect(await caData()).not.toEqual(before);
    },
    slow,
  );
});

async function install(): Promise<void> {
  await helm("install", "--create-namespace", "-n", home, release, chart, ...values, "--wait");
}

/** It waits where it reads a pipe, until somebody writes to that. */
const slowProgram = (name: string): object =>
  programOf(name, {
    variables: { word: { "fn::readFile": `/state/gate-${name}` } },
    resources: { kept: { type: "pulumi:index:Stash", properties: { input: "${word}" } } },
    outputs: { word: "${word}" },
  });

const slowStack = (name: string): object => stackOf(name, { programRef: { name } });

/** A pod on the same volume, with the pipes. */
async function startGates(): Promise<void> {
  const paths = names.map((name) => `/state/gate-${name}`).join(" ");
  const container = {
    name: "gates",
    image: "docker.io/pulumi/pulumi:latest-nonroot",
    command: ["sh", "-c", `mkfifo -m 666 ${paths}; exec sleep 1000000`],
    volumeMounts: [{ name: "state", mountPath: "/state" }],
  };
  const volumes = [{ name: "state", persistentVolumeClaim: { claimName: "state" } }];
  const spec = { terminationGracePeriodSeconds: 1, containers: [container], volumes };
  await applyTo(scene, { apiVersion: "v1", kind: "Pod", metadata: { name: "gates" }, spec });
  await kubectl(["wait", "pod", "gates", "--for=condition=Ready", "--timeout=120s", ...at(scene)]);
}

async function openGates(): Promise<void> {
  const script = names.map((name) => `echo go > /state/gate-${name}`).join(" && ");
  await kubectl(["exec", "gates", ...at(scene), "--", "timeout", "60", "sh", "-c", script]);
}

async function startAll(request: string, starts: number): Promise<void> {
  await Promise.all(names.map((name) => reconcile(scene, name, request)));
  await areRunning(starts);
}

/** As their agents count. */
async function startsOf(name: string): Promise<number> {
  return (await agentLog(scene, name)).match(/run started/g)?.length ?? 0;
}

async function areRunning(starts: number): Promise<void> {
  const isRunning = async (name: string): Promise<boolean> => (await startsOf(name).catch(() => 0)) === starts;
  await waitFor(async () => (await Promise.all(names.map(isRunning))).every(Boolean), {
    timeoutMs: slow / 2,
    pollMs: 500,
    what: `start ${starts} of every update`,
  });
}

/** Each Stack has had so many Updates, all successful, each started once, in the first pod. */
async function areRecordedOnce(updates: number): Promise<void> {
  await openGates();
  for (const name of names) {
    await stackUntil(scene, name, (stack) => isReady(stack) && stack.status?.lastUpdate?.state === "succeeded");
    await waitFor(async () => (await endsOf(name)).every((end) => end !== undefined), { timeoutMs: slow / 2 });
    expect(await endsOf(name)).toEqual(Array.from({ length: updates }, () => "UpdateSucceeded"));
    expect(await startsOf(name)).toBe(updates);
    expect(await podOf(scene, name)).toBe(pods.get(name) ?? "");
    expect((await getStack(scene, name)).status?.outputs).toEqual({ word: "go\n" });
  }
}

/** How each Update of the Stack has ended; undefined while it has not. */
async function endsOf(name: string): Promise<(string | undefined)[]> {
  const all = await updatesOf(scene, name);
  return all.map(({ status: { conditions = [] } = {} }) => {
    const isComplete = conditions.some(({ type, status }) => type === "Complete" && status === "True");
    return isComplete ? conditions.find(({ type }) => type === "Failed")?.reason : undefined;
  });
}

async function caData(): Promise<object> {
  return (await scene.client.get(builtin.secrets, { namespace: home, name: caSecretName })).data ?? {};
}

/** How many CAs each Workspace's agent is told to trust. */
async function bundles(): Promise<number[]> {
  const { namespace } = scene;
  return await Promise.all(
    names.map(async (name) => {
      const { data } = await scene.client.get(builtin.secrets, { namespace, name: `${name}-workspace-tls` });
      return splitBundle(Buffer.from(data?.["ca.crt"] ?? "", "base64").toString()).length;
    }),
  );
}
