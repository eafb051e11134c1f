/** A node is lost during updates: the Stacks report it, and the documented fixes work. */
import { beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { repositoryRoot, secondNode, startSecondNode, stateRoot, stopSecondNode } from "@pko/cluster";
import { freePort, waitFor } from "@pko/testkit";

import {
  applyTo,
  at,
  CliUser,
  execInPod,
  getStack,
  killPod,
  kubectl,
  readyMessage,
  newStack,
  podWith,
  slowProject,
  stackUntil,
  stalledBy,
  untilEvents,
  useScene,
} from "../harness.ts";
import { expectRecovery, loggedStarts, waitForStart } from "./slow-runs.ts";

const slow = 600_000;
let metricsPort: number;
const scene = useScene("lost-node", {
  operator: async () => {
    metricsPort = await freePort();
    return { flags: ["--lost-node-after=5s", `--metrics-address=127.0.0.1:${metricsPort}`] };
  },
});

beforeAll(async () => {
  scene.git.create("slow").commit(slowProject(300));
  scene.defer(() => kubectl(["delete", "node", secondNode.name, "--ignore-not-found"]));
  scene.defer(() => stopSecondNode(stateRoot));
  await startSecondNode(stateRoot);
  await waitFor(() => kubectl(["wait", "--for=condition=Ready", `node/${secondNode.name}`, "--timeout=5s"]), {
    // It unpacks its images first.
    timeoutMs: 240_000,
    what: "the second node to be Ready",
  });
}, slow);

test(
  "Stacks with updates on a lost node are stalled and report the fix, the alert fires, and each fix lets them continue",
  async () => {
    const names = ["forced", "tainted", "leaving"];
    for (const name of names) await deploy(name);
    for (const name of names) await waitForStart(scene, name);
    await stopSecondNode(stateRoot);

    for (const name of names) {
      const stack = await stalledBy(scene, name, { reason: "NodeLost", message: `on node ${secondNode.name}` });
      expect(readyMessage(stack)).toContain(`kubectl delete pod ${name}-workspace-0 -n ${scene.namespace} --force`);
    }
    await untilEvents(scene, "forced", "StackNodeLost");
    expect((await new CliUser(() => scene).why("forced")).cause).toBe("nodeLost");
    await untilFiring(...names);

    await kubectl(["delete", "stack", "leaving", ...at(scene), "--wait=false"]);
    const leaving = await stackUntil(scene, "leaving", (stack) => readyMessage(stack).includes("when it ends"));
    expect(readyMessage(leaving)).toContain("node.kubernetes.io/out-of-service=nodeshutdown:NoExecute");

    await killPod(scene, "forced");
    await waitFor(async () => (await loggedStarts(scene, "forced")).length === 2, {
      timeoutMs: 240_000,
      what: "the next update",
    });
    await execInPod(scene, "forced", "touch /state/hurry");
    expect(await expectRecovery(scene, "forced")).toEqual(["UpdateSucceeded"]);
    expect(await getStack(scene, "leaving")).toBeDefined();
    const taint = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
    await kubectl(["taint", "nodes", secondNode.name, taint]);
    expect(await expectRecovery(scene, "tainted")).toEqual(["UpdateSucceeded"]);
    await kubectl(["wait", "--for=delete", "stack/leaving", ...at(scene), "--timeout=120s"]);
    await untilFiring();
  },
  slow,
);

/** Prefers the second node while it exists. */
async function deploy(name: string): Promise<void> {
  const { spec } = podWith({});
  const hostname = { key: "kubernetes.io/hostname", operator: "In", values: [secondNode.name] };
  const preference = { matchExpressions: [hostname] };
  const affinity = {
    nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference }] },
  };
  const tolerations = secondNode.taints.map(({ key, effect }) => ({ key, effect, operator: "Exists" }));
  const podTemplate = { ...spec.podTemplate, spec: { ...spec.podTemplate.spec, affinity, tolerations } };
  const workspaceTemplate = { spec: { ...spec, podTemplate } };
  await applyTo(scene, newStack(name, { workspaceTemplate, ...scene.git.source("slow") }));
}

/** The operator's stores, from which it makes its metrics, may be behind the statuses that the test reads. */
async function untilFiring(...names: readonly string[]): Promise<void> {
  const areExpected = async (): Promise<boolean> => {
    expect((await firing()).toSorted()).toEqual(names.toSorted());
    return true;
  };
  await waitFor(areExpected, { what: `the alert for ${names.join(", ") || "no Workspace"}` });
}

/** The names of the Workspaces for which the chart's alert fires. */
async function firing(): Promise<string[]> {
  const rules = readFileSync(
    join(repositoryRoot, "charts/pulumi-kubernetes-operator/templates/prometheus-rule.yaml"),
    "utf8",
  );
  const [, metric = "", threshold] =
    /alert: PulumiNodeLost\n\s+expr: max by \(exported_namespace, name\) .*"operator.lastKnown" .*"(\w+)"\) \}\} > (\d+)\n/.exec(
      rules,
    ) ?? [];
  expect(metric).not.toBe("");
  const scraped = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  const series = scraped.matchAll(new RegExp(`^${metric}\\{namespace="${scene.namespace}",name="(.*)"\\} (.*)$`, "gm"));
  return [...series].flatMap(([, name = "", value]) => (Number(value) > Number(threshold) ? [name] : []));
}
