/**
 * For each name that the operator uses, an object of another owner exists before a Stack that needs the name is created,
 * changed and deleted. The object stays unchanged, and the Stack reports the conflict until the object is deleted.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";

import { outputsSecretNameOf, reconcileRequestAnnotation, updateNameOf, type Stack } from "@pko/api";
import { builtin, type KubeObject, type Resource } from "@pko/kube";
import { stacks, updates, workspaces } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { running } from "../harness/pods.ts";
import { isReady, OwnershipStage, testTimeoutMs, stalledCondition, type Place } from "./stage.ts";

interface Case {
  readonly title: string;
  readonly resource: Resource;
  readonly nameFor: (stack: Stack) => string;
  readonly labels?: Readonly<Record<string, string>>;
  /** The rest of the other owner's object. */
  readonly body?: object;
  readonly status?: object;
  /** Whether other controllers have finished writing its status. */
  readonly isSettled?: (object: KubeObject) => boolean;
  /** A patch of the Stack during the conflict. A change of the spec gives the next Update another name. */
  readonly change?: object;
  /** Steps that the operator must not complete during the conflict. */
  readonly blockedSteps: readonly string[];
  /** Whether only another run reports the outputs. */
  readonly needsRun?: boolean;
  /** The number of updates until the Stack is ready, after the object is deleted. */
  readonly runs: number;
}

const changedSpec = { spec: { config: { "app:size": "2" } } };
const changedLabels = { metadata: { labels: { changed: "yes" } } };

const nameOf = ({ metadata }: Pick<KubeObject, "metadata">): string => metadata.name ?? "";
const workspaceName = (stack: Stack): string => `${nameOf(stack)}-workspace`;

/** The name of the first Update. */
const updateName = (stack: Stack): string =>
  updateNameOf({
    stackName: nameOf(stack),
    stackUid: stack.metadata.uid ?? "",
    type: "up",
    generation: 1,
    revision: "1",
    reconcileRequest: "",
    resyncSlot: 0,
    attempt: 0,
  });

const labels = { app: "other" };
const otherPods = { metadata: { labels }, spec: { containers: [{ name: "app", image: "app:1" }] } };
const otherData = { type: "Opaque", data: { password: "aHVzaA==" } };
const statusOf = (object: KubeObject) => (object as { status?: Record<string, unknown> }).status;

/** Steps of a workspace whose objects cannot all be created. */
const workspaceSteps = ["issueCertificate", "applyObjects"];

const cases: readonly Case[] = [
  {
    title: "StatefulSet <stack>-workspace",
    resource: builtin.statefulSets,
    nameFor: workspaceName,
    body: { spec: { serviceName: "other", selector: { matchLabels: labels }, template: otherPods } },
    isSettled: (set) =>
      statusOf(set)?.["observedGeneration"] === set.metadata.generation && statusOf(set)?.["replicas"] === 1,
    blockedSteps: workspaceSteps,
    runs: 1,
  },
  {
    title: "Service <stack>-workspace",
    resource: builtin.services,
    nameFor: workspaceName,
    body: { spec: { selector: labels, ports: [{ port: 80 }] } },
    blockedSteps: workspaceSteps,
    runs: 1,
  },
  {
    title: "Pod <stack>-workspace-0",
    resource: builtin.pods,
    nameFor: (stack) => `${workspaceName(stack)}-0`,
    body: { spec: otherPods.spec },
    blockedSteps: ["retryPodCreation"],
    runs: 1,
  },
  {
    title: "running Pod <stack>-workspace-0 with a label of the operator",
    resource: builtin.pods,
    nameFor: (stack) => `${workspaceName(stack)}-0`,
    labels: { "auto.pulumi.com/component": "workspace" },
    status: running(99),
    body: { spec: otherPods.spec },
    blockedSteps: ["retryPodCreation"],
    runs: 1,
  },
  {
    title: "Secret <stack>-workspace-tls",
    resource: builtin.secrets,
    nameFor: (stack) => `${workspaceName(stack)}-tls`,
    body: otherData,
    blockedSteps: workspaceSteps,
    runs: 1,
  },
  {
    title: "Secret <stack>-outputs",
    resource: builtin.secrets,
    nameFor: (stack) => `${nameOf(stack)}-outputs`,
    body: otherData,
    blockedSteps: ["writeOutputs"],
    runs: 2,
  },
  {
    title: "Secret <update>-stack-outputs",
    resource: builtin.secrets,
    nameFor: (stack) => outputsSecretNameOf(updateName(stack)),
    body: otherData,
    change: changedLabels,
    blockedSteps: ["writeOutputs"],
    needsRun: true,
    runs: 2,
  },
  {
    title: "Workspace <stack>",
    resource: workspaces,
    nameFor: nameOf,
    body: { spec: { local: { dir: "/app" }, stacks: [{ name: "other", create: true }] } },
    isSettled: (workspace) => JSON.stringify(statusOf(workspace)).includes('"Succeeded"'),
    blockedSteps: ["applyWorkspace"],
    runs: 1,
  },
  {
    title: "Update <stack>-<hash>",
    resource: updates,
    nameFor: updateName,
    body: { spec: { workspaceName: "other", stackName: "other", type: "preview" } },
    isSettled: (update) => JSON.stringify(statusOf(update) ?? {}).includes("WorkspaceNotFound"),
    blockedSteps: ["createUpdate"],
    change: changedLabels,
    runs: 1,
  },
];

let stage: OwnershipStage;
beforeAll(async () => {
  stage = await OwnershipStage.open(cases.length);
}, testTimeoutMs);
afterAll(() => stage[Symbol.asyncDispose]());

test.concurrent.each(cases.map((each, index) => [each.title, each, index] as const))(
  "%s of another owner survives a Stack that needs its name",
  async (_, each, index) => {
    const place = stage.place(index);
    const dev = await createConflict(place, each, "dev");
    await expectEventsOnce(place, dev);
    await place.change("dev", each.change ?? changedSpec);
    await waitForReport(place, dev);
    await dev.expectUnchanged();

    const deleted = await createConflict(place, each, "deleted");
    await place.client.delete(stacks, place.at("deleted"));
    await place.waitForDeletion("deleted");
    await waitForGarbageCollection(place, deleted.stack);
    await deleted.expectUnchanged();

    await dev.expectUnchanged();
    expect(await loggedSteps(place, each)).toEqual([]);
    await remove(place, dev);
    await place.until("dev", "recover", isReady);
    const { data } = await place.client.get(builtin.secrets, place.at("dev-outputs"));
    expect(data).toEqual({ greeting: Buffer.from("hello").toString("base64") });
    expect(await ownedUpdates(place, dev.stack)).toHaveLength(each.runs);
  },
  testTimeoutMs,
);

interface Conflict {
  readonly case: Case;
  readonly stack: Stack;
  readonly name: string;
  expectUnchanged(): Promise<void>;
}

/** Creates the object and then the Stack, and waits until the Stack reports the conflict. */
async function createConflict(place: Place, each: Case, stackName: string): Promise<Conflict> {
  const { client } = place;
  const stack = await place.stack(stackName);
  const { resource } = each;
  const { apiVersion, kind } = resource;
  const name = each.nameFor(stack);
  const metadata = { ...place.at(name), labels: { ...labels, ...each.labels }, annotations: { note: "unchanged" } };
  await client.create(resource, { apiVersion, kind, metadata, ...each.body });
  if (each.status) {
    const patch = { type: "merge", body: { status: each.status } } as const;
    await client.patch(resource, place.at(name), { patch, subresource: "status" });
  }
  const before = await settled(place, each, name);
  await place.program(stackName);
  const expectUnchanged = async (): Promise<void> =>
    expect(await client.get(resource, place.at(name))).toEqual(before as never);
  const result = { case: each, stack, name, expectUnchanged };
  await waitForReport(place, result);
  await expectUnchanged();
  return result;
}

/** Controllers write the status of the object, so it is read once they have written nothing for two seconds. */
async function settled({ client, namespace }: Place, { resource, isSettled }: Case, name: string): Promise<KubeObject> {
  const ref = { namespace, name };
  let last = await client.get(resource, ref);
  if (!isSettled) return last;
  return await waitFor(
    async () => {
      const before = last.metadata.resourceVersion;
      last = await client.get(resource, ref);
      return isSettled(last) && last.metadata.resourceVersion === before && last;
    },
    { timeoutMs: testTimeoutMs / 3, what: `${resource.kind} ${name} to settle`, pollMs: 2000 },
  );
}

async function waitForReport(place: Place, { case: each, stack, name }: Conflict): Promise<void> {
  const text = `${each.resource.kind} ${place.namespace}/${name} (without an owner) already exists`;
  await place.until(nameOf(stack), `report ${each.title}`, (now) => {
    const stalled = stalledCondition(now);
    const isSeen = now.status?.observedGeneration === now.metadata.generation;
    return isSeen && stalled?.reason === "OwnershipConflict" && stalled.message.includes(text);
  });
}

/** Returns once all objects that the Stack owns are deleted. */
async function waitForGarbageCollection(place: Place, { metadata }: Stack): Promise<void> {
  const { client, namespace } = place;
  await waitFor(
    async () => {
      const all = await Promise.all(
        [workspaces, updates, builtin.secrets].map((kind) => client.list(kind as Resource, { namespace })),
      );
      const owned = all
        .flatMap(({ items }) => items)
        .filter((object) => object.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid));
      return owned.length === 0;
    },
    { timeoutMs: testTimeoutMs / 3, what: "the garbage collector to finish", pollMs: 200 },
  );
}

async function expectEventsOnce({ client, namespace }: Place, { stack }: Conflict): Promise<void> {
  const events = await waitFor(
    async () => {
      const { items } = await client.list(builtin.events, { namespace });
      const about = items.filter(
        ({ reason, regarding }) => reason === "OwnershipConflict" && regarding?.name === nameOf(stack),
      );
      return about.length > 0 && about;
    },
    { what: "an event" },
  );
  const counts = events.map(({ deprecatedCount }) => deprecatedCount);
  expect(counts).toEqual(counts.map(() => 1));
}

/** Blocked steps that the operator has logged as completed. */
async function loggedSteps({ namespace }: Place, { blockedSteps }: Case): Promise<string[]> {
  const lines = (await stage.log()).split("\n").filter((line) => line.includes("step performed"));
  return lines.filter((line) => line.includes(namespace) && blockedSteps.some((step) => line.includes(`"${step}"`)));
}

async function remove(place: Place, { case: each, name }: Conflict): Promise<void> {
  await place.client.delete(each.resource, place.at(name), { propagationPolicy: "Background" });
  if (!each.needsRun) return;
  const text =
    `Secret ${name} with the outputs of the Update does not exist. The next update writes them; to request one now, ` +
    `set the annotation ${reconcileRequestAnnotation} of the Stack to a new value.`;
  await place.until(
    "dev",
    "report that it needs an update",
    (stack) => stalledCondition(stack)?.message.endsWith(text) ?? false,
  );
  await place.change("dev", { metadata: { annotations: { [reconcileRequestAnnotation]: "write-outputs" } } });
}

async function ownedUpdates({ client, namespace }: Place, { metadata }: Stack): Promise<KubeObject[]> {
  const { items } = await client.list(updates, { namespace });
  return items.filter((update) => update.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid));
}
