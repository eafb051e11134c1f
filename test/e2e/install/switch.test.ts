/**
 * A user changes the chart and nothing else: our chart over a release of the Go operator, on what that operator left.
 * Nothing is run again that was up to date, what was under way ends, what is deleted is destroyed, nothing stays behind.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";

import { network } from "@pko/cluster";
import { builtin } from "@pko/kube";
import { updates, workspaces } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import {
  applyTo,
  assertInstalledUnforbidden,
  at,
  deleteStack,
  getStack,
  isAt,
  isReady,
  kubectl,
  messageOf,
  onFileBackend,
  programOf,
  publishedImage,
  reconcile,
  removeNamespace,
  secretOf,
  stackUntil,
  updatesOf,
  useScene,
} from "../harness.ts";
import { aborted, condition, goOperator, runs, succeeded, timeAgo, type GoOperator } from "./go-operator.ts";
import { chart, helm } from "./helm.ts";

const slow = 300_000;
const release = "pulumi-kubernetes-operator";
const formerChart = join(import.meta.dir, "testdata/go-operator");

const scene = useScene("switch-stacks", { operator: "none" });
const home = `switch-${crypto.randomUUID().slice(0, 8)}`;
let former: GoOperator;
/** The digest of what the Pulumi stack of `shop` holds before the switch. */
let checkpoint: string;

describe("a switch from the Go operator", () => {
  beforeAll(async () => {
    scene.defer(() => removeNamespace(home));
    scene.defer(() => helm("uninstall", release, "-n", home, "--ignore-not-found"));
    former = goOperator(kubectl, scene.namespace);
    await helm("install", "--create-namespace", "-n", home, release, formerChart, `--set=fullnameOverride=${home}`);
    await leadAsFormer();
    await Promise.all([startStatePod(), publishedImage()]);
    await upToDateFromGit();
    await upToDateFromProgram();
    await underWay();
    await doomed();
    // Without it, there would be nothing to see in any test: each would wait in vain.
    await switchOperators();
  }, 2 * slow);

  test(
    "is one helm upgrade; the new operator leads when the former's lease is over",
    async () => {
      const deployments = await kubectl(["get", "deployment", "-n", home, "-o", "name"]);
      expect(deployments.trim()).toBe(`deployment.apps/${home}-controller-manager`);
      await waitFor(async () => (await leader()).startsWith(`${home}-controller-manager`), {
        timeoutMs: slow / 3,
        what: "the new operator to lead",
      });
    },
    slow,
  );

  test(
    "what was under way is ended as aborted, and done once the lock that the former run left is removed",
    async () => {
      // The former operator has recorded no process: the lock may be another cluster's.
      const blocked = await stackUntil(scene, "busy", ({ status }) => status?.lastUpdate?.failure === "conflict");
      expect(messageOf(blocked)).toContain("locked by pulumi@busy-workspace-0 (pid 7) since ");
      expect(messageOf(blocked)).toContain("`pulumi cancel --yes --stack dev`");
      await inState("rm /state/.pulumi/locks/organization/busy/dev/*.json");
      await reconcile(scene, "busy", "unlocked");
      const stack = await stackUntil(scene, "busy", isReady);
      const all = await updatesOf(scene, "busy");
      // The former operator's Update has no start time, so it is not in order with the others.
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
    "what was up to date is not run again and stays ready; its idle pod goes",
    async () => {
      for (const [name, update] of upToDate) {
        await waitFor(async () => await sleeps(name), {
          timeoutMs: slow / 3,
          what: `the workspace of ${name} to sleep`,
        });
        const stack = await getStack(scene, name);
        expect(isReady(stack)).toBe(true);
        expect(stack.status?.lastUpdate?.name).toBe(update);
        expect((await updatesOf(scene, name)).map(({ metadata }) => metadata.name)).toEqual([update]);
      }
      const { status } = await getStack(scene, "shop");
      expect(status?.outputs).toEqual({ password: "[secret]", url: "https://shop.example.com" });
      expect(await checkpointOf("shop")).toBe(checkpoint);
    },
    slow,
  );

  test(
    "a change of it is applied once, to the Pulumi stack that is there",
    async () => {
      const input = "added after the switch";
      await applyTo(scene, programOf("shop", { ...shop, resources: { ...shop.resources, added: stash(input) } }));
      const { status } = await stackUntil(scene, "shop", isAt("2"));
      expect(status?.lastUpdate?.changes).toEqual({ create: 1, same: 2 });
      expect(await updatesOf(scene, "shop")).toHaveLength(2);
      expect(await inState("cat /state/.pulumi/stacks/shop/dev.json")).toContain(input);
    },
    slow,
  );

  test(
    "Updates whose time is over go, also one that nobody had noted",
    async () => {
      await waitFor(async () => (await names("update")).every((name) => !name.startsWith("old-")), {
        timeoutMs: slow / 3,
        what: "the old Updates to go",
      });
    },
    slow,
  );

  test(
    "a Stack that is deleted is destroyed, and nothing of it stays behind",
    async () => {
      const destroyed = ["doomed", "shop"];
      for (const name of destroyed) expect(await stateOf(name)).toContain('"urn"');
      await deleteStack(scene, ...destroyed, "followed", "busy");
      // The emptied Pulumi stack stays, as with the Go operator.
      for (const name of destroyed) expect(await stateOf(name)).not.toContain('"urn"');
      const left = async (): Promise<number> => {
        const { client, namespace } = scene;
        const lists = await Promise.all([
          client.list(updates, { namespace }),
          client.list(workspaces, { namespace }),
          client.list(builtin.statefulSets, { namespace }),
        ]);
        return lists.reduce((count, { items }) => count + items.length, 0);
      };
      await waitFor(async () => (await left()) === 0, { timeoutMs: slow / 3, what: "nothing to be left" });
      await assertInstalledUnforbidden(home, `app.kubernetes.io/instance=${release}`);
    },
    slow,
  );
});

/** One helm upgrade, and nothing else. */
async function switchOperators(): Promise<void> {
  const [repository = "", tag = ""] = (await publishedImage()).replace("docker.io/", "").split(":");
  const values = {
    fullnameOverride: home,
    "image.repository": repository,
    "image.tag": tag,
    watchNamespaces: `{${scene.namespace}}`,
    "crds.upgrade": "false",
    "extraEnv[0].name": "OPERATOR_ALLOW_HTTP",
    "extraEnv[0].value": "true",
    "extraEnv[1].name": "OPERATOR_ALLOW_ADDRESSES",
    "extraEnv[1].value": network.machine,
  };
  const settings = Object.entries(values).map(
    ([name, value]) => `--set${name.startsWith("extraEnv") ? "-string" : ""}=${name}=${value}`,
  );
  await helm("upgrade", "-n", home, release, chart, ...settings, "--wait");
}

const stash = (input: string): object => ({ type: "pulumi:index:Stash", properties: { input } });

const plain = { resources: { kept: stash("kept") } };
const shop = {
  ...plain,
  outputs: { password: { "fn::secret": "hush" }, url: "https://shop.example.com" },
};

/** Each Stack that has nothing to do, and its last Update. */
const upToDate = [
  ["followed", "followed-18beef01"],
  ["shop", "shop-18beef02"],
] as const;

/** YAML, which is JSON too. */
const yamlProject = (name: string, sections: object): string => JSON.stringify({ name, runtime: "yaml", ...sections });

/** A lease that is not given back: whoever comes next waits for its end. */
async function leadAsFormer(): Promise<void> {
  const lease = {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name: "operator.pulumi.com", namespace: home },
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

async function leader(): Promise<string> {
  return await kubectl(["get", "lease", "operator.pulumi.com", "-n", home, "-o", "jsonpath={.spec.holderIdentity}"]);
}

/** It had nothing to do for an hour, so it needs no pod. */
async function sleeps(name: string): Promise<boolean> {
  const path = "jsonpath={.spec.replicas}";
  return (await kubectl(["get", "statefulset", `${name}-workspace`, ...at(scene), "-o", path])) === "0";
}

async function names(kind: string): Promise<string[]> {
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

async function upToDateFromGit(): Promise<void> {
  const commit = scene.git.create("followed").commit({ "Pulumi.yaml": yamlProject("followed", plain) });
  const url = scene.git.url("followed");
  const stack = await former.stack("followed", { ...onFileBackend, stack: "dev", projectRepo: url, branch: "main" });
  const workspace = await former.workspace(stack, {
    serviceAccountName: "pulumi",
    git: { url, ref: commit },
    stacks: [{ name: "dev", create: true }],
  });
  const name = "followed-18beef01";
  await former.update(workspace, stack, {
    name,
    spec: { stackName: "dev" },
    held: false,
    status: { startTime: timeAgo(3610), endTime: timeAgo(3600), conditions: succeeded() },
  });
  await former.status(stack, "stack-status", { ...ready(), lastUpdate: lastUpdate(name, commit) });
}

/**
 * With an input and a request that were served. With older Updates: one whose time is over, and one that an operator
 * aborted and never noted.
 */
async function upToDateFromProgram(): Promise<void> {
  await former.program("shop", shop);
  await deploy("shop", shop);
  checkpoint = await checkpointOf("shop");
  await applyTo(scene, secretOf("inputs", { key: "hush" }));
  const stack = await former.stack("shop", {
    ...onFileBackend,
    stack: "dev",
    programRef: { name: "shop" },
    secretsRef: { key: { type: "Secret", secret: { name: "inputs", key: "key" } } },
    destroyOnFinalize: true,
  });
  const reconcileRequest = "once, in former days";
  await reconcile(scene, "shop", reconcileRequest);
  const workspace = await former.workspace(stack, {
    serviceAccountName: "pulumi",
    flux: { url: "http://pulumi-kubernetes-operator/programs/shop/1", digest: `sha256:${"ab".repeat(32)}` },
    stacks: [{ name: "dev", create: true }],
  });
  const name = "shop-18beef02";
  await former.update(workspace, stack, {
    name: "old-18beef00",
    spec: { stackName: "dev", ttlAfterCompleted: "1s" },
    held: false,
    status: { startTime: timeAgo(7210), endTime: timeAgo(7200), conditions: succeeded() },
  });
  await former.update(workspace, stack, {
    name: "old-18beef01",
    spec: { stackName: "dev", ttlAfterCompleted: "1s" },
    held: true,
    status: { conditions: aborted() },
  });
  await former.update(workspace, stack, {
    name,
    spec: { stackName: "dev" },
    held: false,
    status: {
      startTime: timeAgo(3610),
      endTime: timeAgo(3600),
      conditions: succeeded(),
      outputs: `${name}-stack-outputs`,
    },
  });
  await former.status(stack, "stack-status", {
    ...ready(),
    observedReconcileRequest: reconcileRequest,
    lastUpdate: { ...lastUpdate(name, "1"), reconcileRequest },
    outputs: { password: "[secret]", url: "https://shop.example.com" },
    projectInfo: { name: "shop", runtime: "yaml" },
  });
}

/** An update runs, and its operator and its pod go; the lock of its run stays. */
async function underWay(): Promise<void> {
  await former.program("busy", plain);
  const stack = await former.stack("busy", { ...onFileBackend, stack: "dev", programRef: { name: "busy" } });
  const workspace = await former.workspace(stack, {
    serviceAccountName: "pulumi",
    flux: { url: "http://pulumi-kubernetes-operator/programs/busy/1", digest: `sha256:${"ab".repeat(32)}` },
    stacks: [{ name: "dev", create: true }],
  });
  const name = "busy-18c0ffee";
  await former.update(workspace, stack, {
    name,
    spec: { stackName: "dev" },
    held: true,
    status: { conditions: runs() },
  });
  await former.status(stack, "stack-status", {
    observedGeneration: 1,
    observedReconcileRequest: "",
    currentUpdate: { generation: 1, name, commit: "1" },
    conditions: [
      condition("Ready", "False", "NotReadyInProgress"),
      condition("Reconciling", "True", "StackProcessing"),
    ],
  });
  await deploy("busy", plain);
  const lock = { pid: 7, username: "pulumi", hostname: "busy-workspace-0", timestamp: timeAgo(60) };
  const folder = "/state/.pulumi/locks/organization/busy/dev";
  const file = `${folder}/${crypto.randomUUID()}.json`;
  await inState(`mkdir -p ${folder} && echo '${JSON.stringify(lock)}' > ${file}`);
}

async function doomed(): Promise<void> {
  await deploy("doomed", plain);
  await former.program("doomed", plain);
  const spec = { ...onFileBackend, stack: "dev", programRef: { name: "doomed" }, destroyOnFinalize: true };
  const stack = await former.stack("doomed", spec);
  await former.status(stack, "stack-status", {
    ...ready(),
    lastUpdate: lastUpdate("doomed-18beef03", "1"),
    projectInfo: { name: "doomed", runtime: "yaml" },
  });
}

/** A pod with the stacks' state, in which Pulumi can be run by hand. */
async function startStatePod(): Promise<void> {
  const state = "state";
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: state, namespace: scene.namespace },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: "pulumi",
          image: "docker.io/pulumi/pulumi:latest-nonroot",
          command: ["sleep", "1000000"],
          env: [
            { name: "PULUMI_BACKEND_URL", value: "file:///state" },
            { name: "PULUMI_CONFIG_PASSPHRASE", value: "passphrase" },
          ],
          volumeMounts: [{ name: state, mountPath: "/state" }],
        },
      ],
      volumes: [{ name: state, persistentVolumeClaim: { claimName: state } }],
    },
  };
  await kubectl(["apply", "-f", "-"], { input: JSON.stringify(pod) });
  await kubectl(["wait", "pod", state, "--for=condition=Ready", "--timeout=120s", ...at(scene)]);
}

async function inState(script: string): Promise<string> {
  return await kubectl(["exec", "state", ...at(scene), "--", "sh", "-c", script]);
}

async function stateOf(project: string): Promise<string> {
  return await inState(`cat /state/.pulumi/stacks/${project}/dev.json`);
}

async function checkpointOf(project: string): Promise<string> {
  return await inState(`sha256sum /state/.pulumi/stacks/${project}/dev.json`);
}

/** As the Go operator's agent did it. */
async function deploy(project: string, sections: object): Promise<void> {
  const commands = [
    `mkdir /tmp/${project}`,
    `cd /tmp/${project}`,
    `printf '%s' '${yamlProject(project, sections)}' > Pulumi.yaml`,
    "pulumi stack init dev",
    "pulumi up --yes --skip-preview --stack dev",
  ];
  await inState(`(${commands.join(" && ")}) 2>&1`);
}
