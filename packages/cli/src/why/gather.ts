/** Reads the facts about a Stack. It needs only get and list; what the user may not read is reported as hidden. */
import { dependenciesOf, leaseName, podNameOf, stackNameLabel, workspaceNameOf, type Stack } from "@pko/api";
import { builtin, type ApiObject } from "@pko/kube";
import type { Lease } from "kubernetes-types/coordination/v1";

import type { Context } from "../context.ts";
import { stacks, updates, workspaces } from "../kinds.ts";
import { contentOf, findRecord } from "../runs/records.ts";
import { byCreation } from "../stacks/summary.ts";
import { hiddenIn, look, seenValue, type Hidden, type Seen } from "../visibility.ts";
import type { OperatorFacts, StackFacts } from "./facts.ts";

/** The namespace that the chart and the quickstart manifest use. */
const usualOperatorNamespace = "pulumi-kubernetes-operator";

export interface Surroundings {
  readonly isNamespaceTerminating: boolean;
  readonly operator: OperatorFacts;
  readonly hidden: readonly Hidden[];
}

/** What all Stacks of a namespace share: read once, however many Stacks are explained. */
export async function gatherSurroundings(context: Context): Promise<Surroundings> {
  const { client, namespace } = context;
  const [found, lease] = await Promise.all([
    look("the namespace", client.get(builtin.namespaces, { name: namespace })),
    readLease(context),
  ]);
  return {
    isNamespaceTerminating: seenValue(found)?.metadata.deletionTimestamp !== undefined,
    operator: operatorFacts(lease),
    // A user of one namespace can do without the namespace object: the Stack's message reports its deletion, too.
    hidden: hiddenIn(lease),
  };
}

const operatorFacts = (lease: Seen<ApiObject<Lease>>): OperatorFacts => {
  switch (lease.kind) {
    case "seen":
      return { kind: "present", lease: lease.value };
    case "absent":
      return { kind: "absent" };
    case "hidden":
      return { kind: "unknown" };
  }
};

/** An operator that serves only some namespaces usually runs in one of them. */
async function readLease(context: Context): Promise<Seen<ApiObject<Lease>>> {
  const { client, namespace, operatorNamespace } = context;
  const given = operatorNamespace === undefined ? [namespace, usualOperatorNamespace] : [operatorNamespace];
  let result: Seen<ApiObject<Lease>> = { kind: "absent" };
  for (const each of new Set(given)) {
    const seen = await look(
      "the Lease of the operator",
      client.get(builtin.leases, { namespace: each, name: leaseName }),
    );
    if (seen.kind === "seen") return seen;
    if (seen.kind === "hidden") result = seen;
  }
  if (operatorNamespace !== undefined) return result;
  const fieldSelector = `metadata.name=${leaseName}`;
  const everywhere = await look("the Lease of the operator", client.list(builtin.leases, { fieldSelector }));
  if (everywhere.kind !== "seen") return result.kind === "hidden" ? result : everywhere;
  const [newest] = everywhere.value.items.toSorted((a, b) => renewal(b).localeCompare(renewal(a)));
  return newest ? { kind: "seen", value: newest } : { kind: "absent" };
}

const renewal = ({ spec }: ApiObject<Lease>): string => spec?.renewTime ?? "";

export async function gatherFacts(context: Context, name: string, around: Surroundings): Promise<StackFacts> {
  const { client, namespace, io } = context;
  const base = { now: io.now(), namespace, name, ...around };
  const stack = await client.find(stacks, { namespace, name });
  if (!stack) return { ...base, updates: [], dependencies: new Map() };
  const workspaceName = workspaceNameOf(name);
  const labelSelector = `${stackNameLabel}=${name}`;
  const [workspace, pod, own, failures, dependencies] = await Promise.all([
    look("the Workspace", client.get(workspaces, { namespace, name: workspaceName })),
    look("the workspace pod", client.get(builtin.pods, { namespace, name: podNameOf(workspaceName) })),
    look("the Updates", client.list(updates, { namespace, labelSelector })),
    recordedFailures(context, stack),
    readDependencies(context, stack),
  ]);
  const [seenWorkspace, seenPod] = [seenValue(workspace), seenValue(pod)];
  return {
    ...base,
    stack,
    ...(seenWorkspace && { workspace: seenWorkspace }),
    ...(seenPod && { pod: seenPod }),
    updates: seenValue(own)?.items.toSorted(byCreation) ?? [],
    ...(failures.length > 0 && { failures }),
    dependencies,
    hidden: [...around.hidden, ...hiddenIn(workspace, pod, own)],
  };
}

/** Empty if the last update succeeded, or has no record that the user may read: its message explains enough. */
async function recordedFailures(context: Context, { status }: Stack): Promise<string[]> {
  const { name, state } = status?.lastUpdate ?? {};
  if (name === undefined || state !== "failed") return [];
  const record = seenValue(await findRecord(context, name));
  const content = record && (await contentOf(record));
  if (!content) return [];
  const { failuresIn } = await import("../runs/failures.ts");
  return failuresIn(content.events);
}

async function readDependencies({ client, namespace }: Context, stack: Stack): Promise<Map<string, Stack | undefined>> {
  const names = dependenciesOf(stack);
  const found = await Promise.all(names.map((name) => client.find(stacks, { namespace, name })));
  return new Map(names.map((name, at) => [name, found[at]]));
}
