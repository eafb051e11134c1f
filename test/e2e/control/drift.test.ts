/**
 * Drift of a real object: a dynamic provider manages a ConfigMap, and the test changes it without Pulumi. A check reports it and
 * changes nothing; a correction restores it.
 */
import { beforeAll, expect, test } from "bun:test";

import { driftRequestAnnotation, type Condition, type Stack } from "@pko/api";
import { builtin } from "@pko/kube";
import { waitFor } from "@pko/testkit";

import {
  applyTo,
  at,
  configMapProject,
  createUser,
  execInPod,
  hasReason,
  isReady,
  kubectl,
  listUpdates,
  newApproval,
  newStack,
  stackUntil,
  untilApprovalsAreChecked,
  untilEvents,
  useScene,
} from "../harness.ts";

const slow = 600_000;
const scene = useScene("drift");

beforeAll(async () => {
  const { namespace } = scene;
  await applyTo(scene, {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "RoleBinding",
    metadata: { name: "pulumi" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "edit" },
    subjects: [{ kind: "ServiceAccount", name: "pulumi", namespace }],
  });
  scene.git.create("settings").commit(configMapProject(namespace));
});

const deploy = (driftDetection: object, spec: object = {}): Promise<void> =>
  applyTo(scene, newStack("settings", { ...scene.git.source("settings"), driftDetection, ...spec }));

async function setMode(mode: string): Promise<void> {
  const patch = JSON.stringify({ data: { mode } });
  await kubectl(["patch", "configmap", "settings", ...at(scene), "--type=merge", "--patch", patch]);
}

async function mode(): Promise<string | undefined> {
  const { client, namespace } = scene;
  return (await client.get(builtin.configMaps, { name: "settings", namespace })).data?.["mode"];
}

/** State, history and locks. */
const backendFiles = (): Promise<string> =>
  execInPod(scene, "settings", "find /state/.pulumi -type f | sort | xargs sha256sum");

const drifted = ({ status }: Stack): Condition | undefined =>
  status?.conditions?.find(({ type }) => type === "Drifted");

test(
  "a changed ConfigMap is reported within one interval, with the state untouched",
  async () => {
    await deploy({ intervalSeconds: 60 });
    const deployed = await stackUntil(scene, "settings", isReady);
    const before = await backendFiles();
    await setMode("slow");
    const changedAt = Date.now();
    const readiness = new Set<string | undefined>();
    const found = await stackUntil(scene, "settings", (stack) => {
      readiness.add(stack.status?.conditions?.find(({ type }) => type === "Ready")?.status);
      return drifted(stack)?.status === "True";
    });
    expect([...readiness]).toEqual(["True"]);
    expect(drifted(found)).toMatchObject({ reason: "DriftDetected" });
    expect(drifted(found)?.message).toContain("pulumi-nodejs:dynamic/demo:ConfigMap settings (data.mode)");
    const { updateName = "", resources } = found.status?.drift ?? {};
    expect(resources).toMatchObject([{ operation: "update", properties: ["data.mode"] }]);
    expect(found.status?.lastUpdate).toEqual(deployed.status?.lastUpdate ?? {});
    expect(await backendFiles()).toBe(before);
    expect(await mode()).toBe("slow");
    const checks = (await listUpdates(scene, "settings")).filter(({ spec }) => spec?.previewOnly);
    const later = checks.filter(({ metadata }) => Date.parse(metadata.creationTimestamp ?? "") > changedAt);
    // The first check after the change found it.
    expect(later.map(({ metadata }) => metadata.name)).toEqual([updateName]);
    expect(later[0]?.status?.stdout?.text).toContain("Previewing refresh");
    await untilEvents(scene, "settings", "StackDriftDetected");
  },
  slow,
);

test(
  "drift is corrected when asked, and the correction is reported",
  async () => {
    await deploy({ intervalSeconds: 3600, action: "Correct" });
    await waitFor(async () => (await mode()) === "fast", {
      timeoutMs: 240_000,
      what: "the known drift to be corrected",
    });
    await stackUntil(scene, "settings", (stack) => isReady(stack) && drifted(stack)?.status === "False");

    await setMode("wrong");
    await kubectl(["annotate", "stack", "settings", ...at(scene), `${driftRequestAnnotation}=now`]);
    const corrected = await stackUntil(
      scene,
      "settings",
      (stack) => isReady(stack) && stack.status?.drift?.request === "now" && drifted(stack)?.status === "False",
    );
    expect(await mode()).toBe("fast");
    const { name } = corrected.status?.lastUpdate ?? {};
    expect(corrected.status?.drift?.corrected).toMatchObject({ updateName: name ?? "" });
    await untilEvents(scene, "settings", "StackDriftResolved");
    const [check, correction] = (await listUpdates(scene, "settings")).slice(-2);
    expect(check?.spec).toMatchObject({ type: "refresh", previewOnly: true });
    expect(correction?.spec).toMatchObject({ type: "up", refresh: true });
  },
  slow,
);

test(
  "the correction of a Stack that requires approvals waits for one",
  async () => {
    const asAnna = await createUser(scene, "anna", "approver");
    await untilApprovalsAreChecked(scene);
    await deploy({ intervalSeconds: 3600, action: "Correct" }, { approval: { required: "Always" } });
    // Nothing has changed, so the plan needs no approval.
    await stackUntil(scene, "settings", (stack) => isReady(stack) && stack.status?.approval?.appliedBy !== undefined);

    await setMode("unplanned");
    await kubectl(["annotate", "stack", "settings", ...at(scene), `${driftRequestAnnotation}=approved`, "--overwrite"]);
    const { status } = await stackUntil(scene, "settings", hasReason("AwaitingApproval"));
    expect(status?.approval?.summary).toBe("1 to update\nupdate   pulumi-nodejs:dynamic/demo:ConfigMap settings");
    expect(await mode()).toBe("unplanned");

    if (!status?.approval) throw new Error("there is no request");
    const input = JSON.stringify(newApproval(status.approval, { decidedBy: "anna" }));
    await asAnna(["create", ...at(scene), "-f", "-"], { input });
    const corrected = await stackUntil(
      scene,
      "settings",
      (stack) => isReady(stack) && drifted(stack)?.status === "False",
    );
    expect(await mode()).toBe("fast");
    expect(corrected.status?.approval).toMatchObject({ state: "Approved", decidedBy: "anna" });
    expect(corrected.status?.drift?.corrected?.updateName).toBe(corrected.status?.approval?.appliedBy ?? "");
  },
  slow,
);
