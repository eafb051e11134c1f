/**
 * An upgrade of a Helm release from the Go operator's chart to ours. Stacks that were up to date are not updated again, a
 * running update is aborted and repeated, deleted Stacks are destroyed, and no objects are left behind.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";

import { leaseName } from "@pko/api";
import { builtin } from "@pko/kube";
import { updates, workspaces } from "@pko/operator/kinds";
import { waitFor } from "@pko/testkit";

import {
  applyTo,
  assertCleanLogs,
  at,
  deleteStack,
  getStack,
  isAt,
  isReady,
  kubectl,
  listUpdates,
  machineAddress,
  newProgram,
  newSecret,
  onFileBackend,
  publishedImage,
  readyMessage,
  requestReconcile,
  stackUntil,
  startStatePod,
  useScene,
} from "../harness.ts";
import { aborted, condition, goOperator, running, succeeded, timeAgo, type GoOperator } from "./go-operator.ts";
import { chart, helm } from "./helm.ts";
import { chartValues, leaderPod, release, uninstallAfter } from "./release.ts";

const slow = 300_000;
const goChart = join(import.meta.dir, "testdata/go-operator");

const scene = useScene("switch-stacks", { operator: "none" });
const home = `switch-${crypto.randomUUID().slice(0, 8)}`;
let oldOperator: GoOperator;
/** The digest of the state of `shop` before the switch. */
let checkpoint: string;

describe("a switch from the Go operator", () => {
  beforeAll(async () => {
    uninstallAfter(scene, home);
    oldOperator = goOperator(kubectl, scene);
    await helm("install", "--create-namespace", "-n", home, release, goChart, `--set=fullnameOverride=${home}`);
    await createLeaseOfGoOperator();
    await Promise.all([startPulumiPod(), publishedImage()]);
    await createUpToDateStackFromGit();
    await createUpToDateStackFromProgram();
    await createBusyStack();
    await createStackToDelete();
    // In `beforeAll`, because no test can pass without it.
    await switchOperators();
  }, 2 * slow);

  test(
    "is one helm upgrade, and the new operator becomes leader when the lease of the old one expires",
    async () => {
      const deployments = await kubectl(["get", "deployment", "-n", home, "-o", "name"]);
      expect(deployments.trim()).toBe(`deployment.apps/${home}-controller-manager`);
      await waitFor(async () => (await leaderPod(home))?.startsWith(`${home}-controller-manager`), {
        timeoutMs: slow / 3,
        what: "the new operator to become leader",
      });
    },
    slow,
  );

  test(
    "aborts the running update, and repeats it once the lock of the old run is removed",
    async () => {
      // The Go operator recorded no process, so the lock may belong to another cluster.
      const blocked = await stackUntil(scene, "busy", ({ status }) => status?.lastUpdate?.failure === "conflict");
      expect(readyMessage(blocked)).toContain("locked by pulumi@busy-workspace-0 (pid 7) since ");
      expect(readyMessage(blocked)).toContain("`pulumi cancel --yes --stack dev`");
      await execInStatePod("rm /state/.pulumi/locks/organization/busy/dev/*.json");
      await requestReconcile(scene, "busy", "unlocked");
      const stack = await stackUntil(scene, "busy", isReady);
      const all = await listUpdates(scene, "busy");
      // The Update of the Go operator has no start time, so it is not sorted.
      const first = all.find(({ metadata }) => metadata.name === "busy-18c0ffee");
      const last = all.findLast(({ metadata }) => metadata.name !== "busy-18c0ffee");
      expect(first?.status?.conditions).toContainEqual(
        expect.objectContaining({ type: "Failed", status: "True", reason: "Aborted" }) as never,
      );
      expect(stack.status?.lastUpdate).toMatchObject({ name: last?.metadata.name, state: "succeeded" });
      expect(stack.status?.currentUpdate).toBeUndefined();
    },
    slow,
  );

  test(
    "does not update Stacks that were up to date; they stay ready and their idle pods are deleted",
    async () => {
      for (const [name, update] of upToDate) {
        await waitFor(async () => await isScaledToZero(name), {
          timeoutMs: slow / 3,
          what: `the workspace of ${name} to be scaled to zero`,
        });
        const stack = await getStack(scene, name);
        expect(isReady(stack)).toBe(true);
        expect(stack.status?.lastUpdate?.name).toBe(update);
        expect((await listUpdates(scene, name)).map(({ metadata }) => metadata.name)).toEqual([update]);
      }
      const { status } = await getStack(scene, "shop");
      expect(status?.outputs).toEqual({ password: "[secret]", url: "https://shop.example.com" });
      expect(await stateDigest("shop")).toBe(checkpoint);
    },
    slow,
  );

  test(
    "applies a change once, to the existing Pulumi stack",
    async () => {
      const input = "added after the switch";
      await applyTo(scene, newProgram("shop", { ...shop, resources: { ...shop.resources, added: stash(input) } }));
      const { status } = await stackUntil(scene, "shop", isAt("2"));
      expect(status?.lastUpdate?.changes).toEqual({ create: 1, same: 2 });
      expect(await listUpdates(scene, "shop")).toHaveLength(2);
      expect(await execInStatePod("cat /state/.pulumi/stacks/shop/dev.json")).toContain(input);
    },
    slow,
  );

  test(
    "deletes expired Updates, even one whose result the Stack has not recorded",
    async () => {
      await waitFor(async () => (await listNames("update")).every((name) => !name.startsWith("old-")), {
        timeoutMs: slow / 3,
        what: "the old Updates to be deleted",
      });
    },
    slow,
  );

  test(
    "destroys deleted Stacks and leaves none of their objects",
    async () => {
      const destroyed = ["deleted", "shop"];
      for (const name of destroyed) expect(await readState(name)).toContain('"urn"');
      await deleteStack(scene, ...destroyed, "followed", "busy");
      // The empty Pulumi stack is kept, as with the Go operator.
      for (const name of destroyed) expect(await readState(name)).not.toContain('"urn"');
      const countObjects = async (): Promise<number> => {
        const { client, namespace } = scene;
        const lists = await Promise.all([
          client.list(updates, { namespace }),
          client.list(workspaces, { namespace }),
          client.list(builtin.statefulSets, { namespace }),
        ]);
        return lists.reduce((count, { items }) => count + items.length, 0);
      };
      await waitFor(async () => (await countObjects()) === 0, {
        timeoutMs: slow / 3,
        what: "all objects to be deleted",
      });
      await assertCleanLogs(home, `app.kubernetes.io/instance=${release}`);
    },
    slow,
  );
});

async function switchOperators(): Promise<void> {
  const values = await chartValues(home, scene);
  const env = { OPERATOR_ALLOW_HTTP: "true", OPERATOR_ALLOW_ADDRESSES: machineAddress };
  const extraEnv = Object.entries(env).map(
    ([name, value], index) => `--set-string=extraEnv[${index}].name=${name},extraEnv[${index}].value=${value}`,
  );
  await helm("upgrade", "-n", home, release, chart, ...values, ...extraEnv, "--wait");
}

const stash = (input: string): object => ({ type: "pulumi:index:Stash", properties: { input } });

const plain = { resources: { kept: stash("kept") } };
const shop = {
  ...plain,
  outputs: { password: { "fn::secret": "hush" }, url: "https://shop.example.com" },
};

/** Each Stack that is up to date, and its last Update. */
const upToDate = [
  ["followed", "followed-18beef01"],
  ["shop", "shop-18beef02"],
] as const;

const yamlProject = (name: string, sections: object): string => JSON.stringify({ name, runtime: "yaml", ...sections });

/** The Go operator does not release its lease, so the next leader waits until it expires. */
async function createLeaseOfGoOperator(): Promise<void> {
  const lease = {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name: leaseName, namespace: home },
    spec: {
      holderIdentity: "controller-manager-5d4c_6e2b",
      leaseDurationSeconds: 10,
      leaseTransitions: 3,
      acquireTime: `${timeAgo(3600).slice(0, -1)}.000000Z`,
      renewTime: `${timeAgo(0).slice(0, -1)}.000000Z`,
    },
  };
  await kubectl(["create", "-f", "-"], { input: JSON.stringify(lease) });
}

async function isScaledToZero(name: string): Promise<boolean> {
  const { client, namespace } = scene;
  const { spec } = await client.get(builtin.statefulSets, { name: `${name}-workspace`, namespace });
  return spec?.replicas === 0;
}

async function listNames(kind: string): Promise<string[]> {
  const text = await kubectl(["get", kind, ...at(scene), "-o", "jsonpath={.items[*].metadata.name}"]);
  return text.split(" ");
}

const ready = () => ({
  observedGeneration: 1,
  observedReconcileRequest: "",
  conditions: [condition("Ready", "True", "ProcessingCompleted")],
});

const lastUpdate = (name: string, commit: string) => ({
  generation: 1,
  name,
  type: "up",
  state: "succeeded",
  lastAttemptedCommit: commit,
  lastSuccessfulCommit: commit,
  lastResyncTime: timeAgo(3600),
});

async function createUpToDateStackFromGit(): Promise<void> {
  const commit = scene.git.create("followed").commit({ "Pulumi.yaml": yamlProject("followed", plain) });
  const url = scene.git.url("followed");
  const stack = await oldOperator.stack("followed", {
    ...onFileBackend,
    stack: "dev",
    projectRepo: url,
    branch: "main",
  });
  const workspace = await oldOperator.workspace(stack, {
    serviceAccountName: "pulumi",
    git: { url, ref: commit },
    stacks: [{ name: "dev", create: true }],
  });
  const name = "followed-18beef01";
  await oldOperator.update(workspace, stack, {
    name,
    spec: { stackName: "dev" },
    hasFinalizer: false,
    status: { startTime: timeAgo(3610), endTime: timeAgo(3600), conditions: succeeded() },
  });
  await oldOperator.status(stack, "stack-status", { ...ready(), lastUpdate: lastUpdate(name, commit) });
}

/**
 * Has an input, an observed reconcile request, and two older Updates: an expired one, and an aborted one whose result the Stack
 * has not recorded.
 */
async function createUpToDateStackFromProgram(): Promise<void> {
  await oldOperator.program("shop", shop);
  await runUp("shop", shop);
  checkpoint = await stateDigest("shop");
  await applyTo(scene, newSecret("inputs", { key: "hush" }));
  const stack = await oldOperator.stack("shop", {
    ...onFileBackend,
    stack: "dev",
    programRef: { name: "shop" },
    secretsRef: { key: { type: "Secret", secret: { name: "inputs", key: "key" } } },
    destroyOnFinalize: true,
  });
  const reconcileRequest = "before the switch";
  await requestReconcile(scene, "shop", reconcileRequest);
  const workspace = await oldOperator.workspace(stack, {
    serviceAccountName: "pulumi",
    flux: { url: "http://pulumi-kubernetes-operator/programs/shop/1", digest: `sha256:${"ab".repeat(32)}` },
    stacks: [{ name: "dev", create: true }],
  });
  const name = "shop-18beef02";
  await oldOperator.update(workspace, stack, {
    name: "old-18beef00",
    spec: { stackName: "dev", ttlAfterCompleted: "1s" },
    hasFinalizer: false,
    status: { startTime: timeAgo(7210), endTime: timeAgo(7200), conditions: succeeded() },
  });
  await oldOperator.update(workspace, stack, {
    name: "old-18beef01",
    spec: { stackName: "dev", ttlAfterCompleted: "1s" },
    hasFinalizer: true,
    status: { conditions: aborted() },
  });
  await oldOperator.update(workspace, stack, {
    name,
    spec: { stackName: "dev" },
    hasFinalizer: false,
    status: {
      startTime: timeAgo(3610),
      endTime: timeAgo(3600),
      conditions: succeeded(),
      outputs: `${name}-stack-outputs`,
    },
  });
  await oldOperator.status(stack, "stack-status", {
    ...ready(),
    observedReconcileRequest: reconcileRequest,
    lastUpdate: { ...lastUpdate(name, "1"), reconcileRequest },
    outputs: { password: "[secret]", url: "https://shop.example.com" },
    projectInfo: { name: "shop", runtime: "yaml" },
  });
}

/** A Stack with a running update, whose lock remains when the operator and the pod are deleted. */
async function createBusyStack(): Promise<void> {
  await oldOperator.program("busy", plain);
  const stack = await oldOperator.stack("busy", { ...onFileBackend, stack: "dev", programRef: { name: "busy" } });
  const workspace = await oldOperator.workspace(stack, {
    serviceAccountName: "pulumi",
    flux: { url: "http://pulumi-kubernetes-operator/programs/busy/1", digest: `sha256:${"ab".repeat(32)}` },
    stacks: [{ name: "dev", create: true }],
  });
  const name = "busy-18c0ffee";
  await oldOperator.update(workspace, stack, {
    name,
    spec: { stackName: "dev" },
    hasFinalizer: true,
    status: { conditions: running() },
  });
  await oldOperator.status(stack, "stack-status", {
    observedGeneration: 1,
    observedReconcileRequest: "",
    currentUpdate: { generation: 1, name, commit: "1" },
    conditions: [
      condition("Ready", "False", "NotReadyInProgress"),
      condition("Reconciling", "True", "StackProcessing"),
    ],
  });
  await runUp("busy", plain);
  const lock = { pid: 7, username: "pulumi", hostname: "busy-workspace-0", timestamp: timeAgo(60) };
  const folder = "/state/.pulumi/locks/organization/busy/dev";
  const file = `${folder}/${crypto.randomUUID()}.json`;
  await execInStatePod(`mkdir -p ${folder} && echo '${JSON.stringify(lock)}' > ${file}`);
}

async function createStackToDelete(): Promise<void> {
  await runUp("deleted", plain);
  await oldOperator.program("deleted", plain);
  const spec = { ...onFileBackend, stack: "dev", programRef: { name: "deleted" }, destroyOnFinalize: true };
  const stack = await oldOperator.stack("deleted", spec);
  await oldOperator.status(stack, "stack-status", {
    ...ready(),
    lastUpdate: lastUpdate("deleted-18beef03", "1"),
    projectInfo: { name: "deleted", runtime: "yaml" },
  });
}

/** Starts a pod with the state volume, in which the test runs the Pulumi CLI. */
async function startPulumiPod(): Promise<void> {
  const env = [
    { name: "PULUMI_BACKEND_URL", value: "file:///state" },
    { name: "PULUMI_CONFIG_PASSPHRASE", value: "passphrase" },
  ];
  await startStatePod(scene, { name: "state", command: ["sleep", "1000000"], env });
}

async function execInStatePod(script: string): Promise<string> {
  return await kubectl(["exec", "state", ...at(scene), "--", "sh", "-c", script]);
}

async function readState(project: string): Promise<string> {
  return await execInStatePod(`cat /state/.pulumi/stacks/${project}/dev.json`);
}

async function stateDigest(project: string): Promise<string> {
  return await execInStatePod(`sha256sum /state/.pulumi/stacks/${project}/dev.json`);
}

/** Deploys a project with the CLI, as the Go operator's agent does. */
async function runUp(project: string, sections: object): Promise<void> {
  const commands = [
    `mkdir /tmp/${project}`,
    `cd /tmp/${project}`,
    `printf '%s' '${yamlProject(project, sections)}' > Pulumi.yaml`,
    "pulumi stack init dev",
    "pulumi up --yes --skip-preview --stack dev",
  ];
  await execInStatePod(`(${commands.join(" && ")}) 2>&1`);
}
