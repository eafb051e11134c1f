/** Deletion: Stacks that are deleted together, protected Stacks, and a namespace that is deleted with its Stacks. */
import { beforeAll, expect, test } from "bun:test";

import { stackFinalizer } from "@pko/api";
import { stacks } from "@pko/operator/kinds";
import { waitFor } from "@pko/testkit";

import {
  applyTo,
  at,
  configMapProject,
  execInPod,
  hasReason,
  isReady,
  kubectl,
  newProgram,
  newStackWithDestroy,
  readVolume,
  readyMessage,
  removeNamespace,
  stackUntil,
  useScene,
  type Place,
} from "../harness.ts";

const slow = 600_000;
const scene = useScene("deletion", {
  secondNamespace: "ending",
  operator: { forbidden: [/because it is being terminated/] },
});

/** Its state is in the backend under the same name. */
const program = newProgram("part", {
  configuration: { base: { type: "string", default: "none" } },
  resources: { part: { type: "pulumi:index:Stash", properties: { input: "${base}" } } },
  outputs: { name: "${pulumi.stack}" },
});

const stack = (name: string, spec: object = {}): object =>
  newStackWithDestroy(name, { programRef: { name: "part" }, ...spec });

beforeAll(() => Promise.all([applyTo(scene, program), applyTo(scene.second, program)]), slow);

const after = (...names: readonly string[]): object => ({ prerequisites: names.map((name) => ({ name })) });
const reading = (name: string): object => ({
  secretsRef: { base: { type: "StackOutput", stack: name, output: "name" } },
});

/** Who depends on whom: by prerequisites, by outputs, or by both. */
const levels = {
  network: {},
  storage: {},
  cluster: after("network"),
  database: reading("storage"),
  shop: { ...after("cluster"), ...reading("database") },
  reports: reading("database"),
};
const dependencies = [
  ["cluster", "network"],
  ["database", "storage"],
  ["shop", "cluster"],
  ["shop", "database"],
  ["reports", "database"],
] as const;

test.concurrent(
  "six Stacks in three levels, deleted by one command, are destroyed in reverse order, and nothing is left",
  async () => {
    const names = Object.keys(levels);
    await applyTo(scene, ...Object.entries(levels).map(([name, spec]) => stack(name, spec)));
    await Promise.all(names.map((name) => stackUntil(scene, name, isReady)));
    const states = "cat /state/.pulumi/stacks/part/*.json";
    expect((await execInPod(scene, "network", states)).match(/::part"/g)?.length).toBe(names.length);

    await kubectl(["delete", "stacks", "--all", ...at(scene), "--timeout=300s"]);
    const left = await readVolume(scene, `${history}; ${states}`);
    expect(left).not.toContain('"urn"');
    const destroys = parseDestroys(left);
    expect([...destroys.keys()].toSorted()).toEqual(names.toSorted());
    for (const [dependent, base] of dependencies) {
      const [first, then] = [destroys.get(dependent)?.endTime ?? Infinity, destroys.get(base)?.startTime ?? 0];
      expect({ dependent, base, inOrder: first <= then }).toEqual({ dependent, base, inOrder: true });
    }
    const events = await kubectl(["get", "events", ...at(scene), "--output=jsonpath={.items[*].reason}"]);
    expect(events).not.toContain("StackDependentsIgnored");
  },
  slow,
);

interface HistoryEntry {
  readonly kind: string;
  readonly startTime: number;
  readonly endTime: number;
}

/** Prints a line for each entry of the backend's history: its file and its content. */
const history = 'cd /state/.pulumi/history/part; for f in */*.history.json; do echo "$f" $(cat "$f"); done';

/** When each stack was destroyed, from what `history` prints. */
function parseDestroys(text: string): Map<string, HistoryEntry> {
  const lines = text.matchAll(/^([^/\n]+)\/\S+\.history\.json (.*)$/gm);
  const entries = Array.from(lines, ([, name = "", entry = ""]) => [name, JSON.parse(entry) as HistoryEntry] as const);
  return new Map(entries.filter(([, { kind }]) => kind === "destroy"));
}

/** Its ConfigMap is in the first namespace, which stays. */
async function prepareSettings({ namespace }: Place): Promise<object> {
  await applyTo(scene, {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "RoleBinding",
    metadata: { name: "ending" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "edit" },
    subjects: [{ kind: "ServiceAccount", name: "pulumi", namespace }],
  });
  scene.git.create("settings").commit(configMapProject(scene.namespace));
  return newStackWithDestroy("ending", scene.git.source("settings"));
}

const settingsUid = (): Promise<string> =>
  kubectl(["get", "configmap", "settings", ...at(scene), "--output=jsonpath={.metadata.uid}"]);

test.concurrent(
  "in a namespace that is being deleted, Stacks keep their finalizer, report what to do, and destroy nothing",
  async () => {
    const { second } = scene;
    await applyTo(second, await prepareSettings(second), stack("protected", { protect: true }));
    await Promise.all(["ending", "protected"].map((name) => stackUntil(second, name, isReady)));
    await isProtected(second, "protected");
    const uid = await settingsUid();
    expect(uid).not.toBe("");

    await removeNamespace(second.namespace);
    const ending = await stackUntil(second, "ending", hasReason("NamespaceTerminating"));
    expect(readyMessage(ending)).toContain("set spec.destroyOnFinalize to false");
    const kept = await stackUntil(second, "protected", hasReason("Protected"));
    expect(readyMessage(kept)).toContain("set spec.protect to false");
    for (const { metadata } of [ending, kept]) expect(metadata.finalizers).toEqual([stackFinalizer]);
    expect(await settingsUid()).toBe(uid);

    await patch(second, "ending", { destroyOnFinalize: false });
    await patch(second, "protected", { destroyOnFinalize: false, protect: false });
    await kubectl(["wait", "--for=delete", `namespace/${second.namespace}`, "--timeout=300s"]);
    expect(await settingsUid()).toBe(uid);
  },
  slow,
);

async function patch({ client, namespace }: Place, name: string, spec: object): Promise<void> {
  await client.patch(stacks, { name, namespace }, { patch: { type: "merge", body: { spec } } });
}

/** Waits until the policy is in force with which the API server does not delete the Stack. */
async function isProtected(place: Place, name: string): Promise<void> {
  const isDenied = (): Promise<boolean> =>
    kubectl(["delete", "stack", name, ...at(place), "--dry-run=server"]).then(
      () => false,
      (error: unknown) => String(error).includes("set spec.protect to false first"),
    );
  await waitFor(isDenied, { timeoutMs: 60_000, what: `the deletion of Stack ${name} to be denied` });
}
