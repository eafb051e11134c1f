/** Stacks as they stand: waited for, asked, and looked into. */
import { reconcileRequestAnnotation, type Stack, type Update } from "@pko/api";
import { builtin } from "@pko/kube";
import { stacks, updates } from "@pko/operator";
import { waitFor } from "@pko/testkit";
import { expect } from "bun:test";

import { at, kubectl, type Place } from "./cluster.ts";

export async function getStack({ client, namespace }: Place, name: string): Promise<Stack> {
  return await client.get(stacks, { name, namespace });
}

export async function updatesOf({ client, namespace }: Place, name: string): Promise<Update[]> {
  const { items } = await client.list(updates, { namespace, labelSelector: `pulumi.com/stack-name=${name}` });
  return items.toSorted((a, b) => `${a.status?.startTime}`.localeCompare(`${b.status?.startTime}`));
}

/** What a test waits for. Its words are for the message when time runs out; the code itself tells it when there are none. */
type Wish = ((stack: Stack) => boolean) & { readonly words?: string };

const wished = (words: string, wish: (stack: Stack) => boolean): Wish => Object.assign(wish, { words });

/** The Stack once its status satisfies the test's wish; the status as it stands when time runs out. */
export async function stackUntil(place: Place, name: string, wish: Wish): Promise<Stack> {
  let last: Stack | undefined;
  const satisfied = async (): Promise<Stack | false> => {
    last = await getStack(place, name);
    return wish(last) && last;
  };
  try {
    return await waitFor(satisfied, {
      timeoutMs: 240_000,
      pollMs: 100,
      what: `Stack ${name}: ${wish.words ?? wish.toString()}`,
    });
  } catch (error) {
    throw new Error(`${String(error)}\nits status: ${JSON.stringify(last?.status, undefined, 2)}`, { cause: error });
  }
}

export function isReady({ metadata, status }: Stack): boolean {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  return ready?.status === "True" && ready.observedGeneration === metadata.generation;
}

/** It was updated to this commit, or to this generation of its Program. */
export const isAt = (revision: string | undefined): Wish =>
  wished(`is at ${revision}`, (stack) => isReady(stack) && stack.status?.lastUpdate?.lastSuccessfulCommit === revision);

/** What a Stack tells people. */
export const messageOf = ({ status }: Stack): string =>
  status?.conditions?.find(({ type }) => type === "Ready")?.message ?? "";

/** Why it is stalled; undefined when it is not. */
export const stalledReasonOf = ({ status }: Stack): string | undefined =>
  status?.conditions?.find(({ type }) => type === "Stalled")?.reason;

/** One of its conditions has this reason. */
export const hasReason = (wanted: string): Wish =>
  wished(`has the reason ${wanted}`, ({ status }) =>
    Boolean(status?.conditions?.some(({ reason }) => reason === wanted)),
  );

interface Trouble {
  readonly words: string;
  /** Of the condition Stalled; that its source is not available unless given. */
  readonly reason?: string;
}

/** Until the Stack is stalled by this, and says so of its present spec and request. */
export async function stalledBy(
  place: Place,
  name: string,
  { words, reason = "SourceUnavailable" }: Trouble,
): Promise<Stack> {
  const isSaid = wished(
    `is stalled by ${reason}: ${words}`,
    ({ status, metadata }) =>
      status?.observedGeneration === metadata.generation &&
      status?.observedReconcileRequest === metadata.annotations?.[reconcileRequestAnnotation] &&
      Boolean(
        status?.conditions?.some(
          (each) => each.type === "Stalled" && each.reason === reason && each.message.includes(words),
        ),
      ),
  );
  const stack = await stackUntil(place, name, isSaid);
  expect(stack.status?.conditions?.find(({ type }) => type === "Ready")?.status).toBe("False");
  return stack;
}

/** The identity of the Stack's pod: another one is another pod. */
export async function podOf({ client, namespace }: Place, stack: string): Promise<string> {
  const { metadata } = await client.get(builtin.pods, { name: `${stack}-workspace-0`, namespace });
  return metadata.uid ?? "";
}

/** Asks for an update, by a value that was not there before. */
export async function reconcile(place: Place, stack: string, request: string): Promise<void> {
  const annotation = `${reconcileRequestAnnotation}=${request}`;
  await kubectl(["annotate", "stack", stack, ...at(place), "--overwrite", annotation]);
}

/** The Stack once it has run for the request. */
export async function requested(place: Place, name: string, request: string): Promise<Stack> {
  await reconcile(place, name, request);
  const isDone = (stack: Stack): boolean => isReady(stack) && stack.status?.lastUpdate?.reconcileRequest === request;
  return await stackUntil(place, name, isDone);
}

/** What a script says in the container that runs Pulumi. */
export async function inPod(place: Place, stack: string, script: string): Promise<string> {
  const container = ["exec", `${stack}-workspace-0`, ...at(place), "-c", "pulumi"];
  return await kubectl([...container, "--", "sh", "-c", script]);
}

export async function agentLog(place: Place, stack: string): Promise<string> {
  return await kubectl(["logs", `${stack}-workspace-0`, ...at(place), "-c", "pulumi"]);
}

/** Ends the pod as a node's crash does. */
export async function killPod(place: Place, stack: string): Promise<void> {
  await kubectl(["delete", "pod", `${stack}-workspace-0`, ...at(place), "--grace-period=0", "--force"]);
}

export async function deleteStack(place: Place, ...names: readonly string[]): Promise<void> {
  await kubectl(["delete", "stack", ...names, ...at(place), "--timeout=240s"]);
}

/** Of the Stack, and of its Workspace, which has its name: as JSON text. */
export async function eventsOf(place: Place, stack: string): Promise<string> {
  return await kubectl([
    "get",
    "events",
    ...at(place),
    `--field-selector=involvedObject.name=${stack}`,
    "--output=json",
  ]);
}

/** An output as those get it who use it: secret ones too. */
export async function outputOf({ client, namespace }: Place, stack: string, output: string): Promise<string> {
  const { data } = await client.get(builtin.secrets, { name: `${stack}-outputs`, namespace });
  return Buffer.from(data?.[output] ?? "", "base64").toString();
}
