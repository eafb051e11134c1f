/** A node that is lost for good in the middle of updates: what people are told, and that the documented fixes end it. */
import { beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { Update } from "@pko/api";
import { repositoryRoot, secondNode, startSecondNode, stateRoot, stopSecondNode } from "@pko/cluster";
import { freePort, waitFor } from "@pko/testkit";

import {
  applyTo,
  at,
  eventsOf,
  getStack,
  inPod,
  isReady,
  killPod,
  kubectl,
  messageOf,
  podWith,
  stackOf,
  stackUntil,
  stalledBy,
  updatesOf,
  useScene,
} from "../harness.ts";
import { slowProject } from "./programs.ts";

const slow = 600_000;
const metricsPort = await freePort();
const scene = useScene("lost-node", {
  operator: { flags: ["--lost-node-after=5s", `--metrics-address=127.0.0.1:${metricsPort}`] },
});

beforeAll(async () => {
  scene.git.create("slow").commit(slowProject(300));
  scene.defer(() => kubectl(["delete", "node", secondNode.name, "--ignore-not-found"]));
  scene.defer(() => stopSecondNode(stateRoot));
  await startSecondNode(stateRoot);
  await waitFor(() => kubectl(["wait", "--for=condition=Ready", `node/${secondNode.name}`, "--timeout=5s"]), {
    timeoutMs: 60_000,
    what: "the second node to be Ready",
  });
}, slow);

test(
  "updates on a lost node are stalled with the fix, the alert fires, and each fix lets the Stacks continue",
  async () => {
    const names = ["forced", "tainted", "leaving"];
    for (const name of names) await deploy(name);
    for (const name of names) await begun(name);
    await stopSecondNode(stateRoot);

    for (const name of names) {
      const stack = await stalledBy(scene, name, { reason: "NodeLost", words: `on node ${secondNode.name}` });
      expect(messageOf(stack)).toContain(`kubectl delete pod ${name}-workspace-0 -n ${scene.namespace} --force`);
    }
    expect(await eventsOf(scene, "forced")).toContain("StackNodeLost");
    expect((await firing()).toSorted()).toEqual(names.toSorted());

    await kubectl(["delete", "stack", "leaving", ...at(scene), "--wait=false"]);
    const leaving = await stackUntil(scene, "leaving", (stack) => messageOf(stack).includes("when it has ended"));
    expect(messageOf(leaving)).toContain("node.kubernetes.io/out-of-service=nodeshutdown:NoExecute");

    await killPod(scene, "forced");
    await waitFor(async () => (await told("forced")).length === 2, { timeoutMs: 240_000, what: "the next update" });
    await inPod(scene, "forced", "touch /state/hurry");
    await recovers("forced");
    expect(await getStack(scene, "leaving")).toBeDefined();
    const taint = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
    await kubectl(["taint", "nodes", secondNode.name, taint]);
    await recovers("tainted");
    await kubectl(["wait", "--for=delete", "stack/leaving", ...at(scene), "--timeout=120s"]);
    expect(await firing()).toEqual([]);
  },
  slow,
);

/** On the second node while that is there, and anywhere else when it is not. */
async function deploy(name: string): Promise<void> {
  const { spec } = podWith({});
  const hostname = { key: "kubernetes.io/hostname", operator: "In", values: [secondNode.name] };
  const preference = { matchExpressions: [hostname] };
  const affinity = {
    nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference }] },
  };
  const tolerations = secondNode.taints.map(({ key, effect }) => ({ key, effect, operator: "Exists" }));
  const podTemplate = { ...spec.podTemplate, spec: { ...spec.podTemplate.spec, affinity, tolerations } };
  const source = { projectRepo: scene.git.url("slow"), branch: "main" };
  await applyTo(scene, stackOf(name, { workspaceTemplate: { spec: { ...spec, podTemplate } }, ...source }));
}

/** The names of the Workspaces for which the expression of the chart's alert is true. */
async function firing(): Promise<string[]> {
  const rules = readFileSync(
    join(repositoryRoot, "charts/pulumi-kubernetes-operator/templates/prometheus-rule.yaml"),
    "utf8",
  );
  const [, metric = "", threshold] =
    /alert: PulumiNodeLost\n\s+expr: max by \(exported_namespace, name\) \((\w+)\{.*\}\) > (\d+)\n/.exec(rules) ?? [];
  expect(metric).not.toBe("");
  const scraped = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  const series = scraped.matchAll(new RegExp(`^${metric}\\{namespace="${scene.namespace}",name="(.*)"\\} (.*)$`, "gm"));
  return [...series].flatMap(([, name = "", value]) => (Number(value) > Number(threshold) ? [name] : []));
}

/** The interrupted Update is aborted; the next one removes the lock that it has left, and succeeds. */
async function recovers(name: string): Promise<void> {
  await stackUntil(scene, name, isReady);
  const [first, ...others] = await updatesOf(scene, name);
  expect(endOf(first)).toBe("Aborted");
  expect(others.map(endOf)).toEqual(["UpdateSucceeded"]);
  expect(await told(name)).toEqual(["begun", "begun"]);
}

function endOf(update: Update | undefined): string | undefined {
  return update?.status?.conditions?.find(({ type }) => type === "Failed")?.reason;
}

async function begun(name: string): Promise<void> {
  await waitFor(async () => (await told(name)).length > 0, {
    timeoutMs: 240_000,
    what: `the program of ${name} to begin`,
  });
}

async function told(name: string): Promise<string[]> {
  return (await inPod(scene, name, `cat /state/log-${name} 2>/dev/null || true`)).split("\n").filter(Boolean);
}
