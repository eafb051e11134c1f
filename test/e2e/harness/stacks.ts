/** Reads Stacks and their pods, waits for their status, and requests updates. */
import { reconcileRequestAnnotation, type Stack, type Update } from "@pko/api";
import { builtin } from "@pko/kube";
import { stacks, updates } from "@pko/operator/kinds";
import { waitFor } from "@pko/testkit";
import { expect } from "bun:test";

import { at, kubectl, readSecret, type Place } from "./cluster.ts";

export async function getStack({ client, namespace }: Place, name: string): Promise<Stack> {
  return await client.get(stacks, { name, namespace });
}

/** In the order in which they ran. Times have a resolution of a second, in which one run may end and the next one start. */
export async function listUpdates({ client, namespace }: Place, name: string): Promise<Update[]> {
  const { items } = await client.list(updates, { namespace, labelSelector: `pulumi.com/stack-name=${name}` });
  const times = ({ status }: Update): string => `${status?.startTime} ${status?.endTime}`;
  return items.toSorted((a, b) => times(a).localeCompare(times(b)));
}

/** The reason of the Failed condition: how the Update ended, even if it succeeded. */
export const failedReason = (update: Update | undefined): string | undefined =>
  update?.status?.conditions?.find(({ type }) => type === "Failed")?.reason;

/** The description is for the timeout message, which otherwise quotes the source of the function. */
type StackPredicate = ((stack: Stack) => boolean) & { readonly description?: string; readonly timeoutMs?: number };

const described = (description: string, predicate: (stack: Stack) => boolean): StackPredicate =>
  Object.assign(predicate, { description });

/** For a Stack that waits for others. */
export const within = (timeoutMs: number, predicate: (stack: Stack) => boolean): StackPredicate =>
  Object.assign((stack: Stack) => predicate(stack), { description: predicate.name, timeoutMs });

/** Returns the Stack once it satisfies the predicate. The timeout message contains the last status. */
export async function stackUntil({ watches }: Place, name: string, isSatisfied: StackPredicate): Promise<Stack> {
  const { timeoutMs = 240_000, description = isSatisfied.toString() } = isSatisfied;
  let last: Stack | undefined;
  for await (const stack of watches.versions(stacks, name, timeoutMs)) {
    if (isSatisfied(stack)) return stack;
    last = stack;
  }
  const status = JSON.stringify(last?.status, undefined, 2);
  throw new Error(`timed out after ${timeoutMs} ms waiting for Stack ${name}: ${description}\nlast status: ${status}`);
}

export function isReady({ metadata, status }: Stack): boolean {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  return ready?.status === "True" && ready.observedGeneration === metadata.generation;
}

/** The last update deployed this commit, or this generation of the Program. */
export const isAt = (revision: string | undefined): StackPredicate =>
  described(
    `is at ${revision}`,
    (stack) => isReady(stack) && stack.status?.lastUpdate?.lastSuccessfulCommit === revision,
  );

/** The message of the Ready condition. */
export const readyMessage = ({ status }: Stack): string =>
  status?.conditions?.find(({ type }) => type === "Ready")?.message ?? "";

/** The reason of the Stalled condition; undefined if there is none. */
export const stalledReason = ({ status }: Stack): string | undefined =>
  status?.conditions?.find(({ type }) => type === "Stalled")?.reason;

/** Whether a condition has this reason. */
export const hasReason = (wanted: string): StackPredicate =>
  described(`has the reason ${wanted}`, ({ status }) =>
    Boolean(status?.conditions?.some(({ reason }) => reason === wanted)),
  );

interface StalledCondition {
  /** Part of the message. */
  readonly message: string;
  /** SourceUnavailable by default. */
  readonly reason?: string;
}

/** Waits until the Stack is stalled for this reason at its current generation and reconcile request. */
export async function stalledBy(
  place: Place,
  name: string,
  { message, reason = "SourceUnavailable" }: StalledCondition,
): Promise<Stack> {
  const isStalled = described(
    `is stalled by ${reason}: ${message}`,
    ({ status, metadata }) =>
      status?.observedGeneration === metadata.generation &&
      status?.observedReconcileRequest === metadata.annotations?.[reconcileRequestAnnotation] &&
      Boolean(
        status?.conditions?.some(
          (each) => each.type === "Stalled" && each.reason === reason && each.message.includes(message),
        ),
      ),
  );
  const stack = await stackUntil(place, name, isStalled);
  expect(stack.status?.conditions?.find(({ type }) => type === "Ready")?.status).toBe("False");
  return stack;
}

/** The UID of the Stack's workspace pod. It changes when the pod is replaced. */
export async function podUid({ client, namespace }: Place, stack: string): Promise<string> {
  const { metadata } = await client.get(builtin.pods, { name: `${stack}-workspace-0`, namespace });
  return metadata.uid ?? "";
}

/** Requests an update by setting the annotation to a new value. */
export async function requestReconcile({ client, namespace }: Place, name: string, request: string): Promise<void> {
  const body = { metadata: { annotations: { [reconcileRequestAnnotation]: request } } };
  await client.patch(stacks, { namespace, name }, { patch: { type: "merge", body } });
}

/** Requests an update and returns the Stack once that update has succeeded. */
export async function reconcileAndWait(place: Place, name: string, request: string): Promise<Stack> {
  await requestReconcile(place, name, request);
  const isDone = (stack: Stack): boolean => isReady(stack) && stack.status?.lastUpdate?.reconcileRequest === request;
  return await stackUntil(place, name, isDone);
}

/** Runs a shell script in the `pulumi` container and returns its output. */
export async function execInPod(place: Place, stack: string, script: string): Promise<string> {
  const container = ["exec", `${stack}-workspace-0`, ...at(place), "-c", "pulumi"];
  return await kubectl([...container, "--", "sh", "-c", script]);
}

/** Force-deletes the pod, without a grace period. */
export async function killPod(place: Place, stack: string): Promise<void> {
  await kubectl(["delete", "pod", `${stack}-workspace-0`, ...at(place), "--grace-period=0", "--force"]);
}

export async function deleteStack(place: Place, ...names: readonly string[]): Promise<void> {
  await kubectl(["delete", "stack", ...names, ...at(place), "--timeout=240s"]);
}

/** Events of the Stack and of its Workspace, which has the same name. */
export async function eventsJson({ client, namespace }: Place, stack: string): Promise<string> {
  const { items } = await client.list(builtin.events, { namespace, fieldSelector: `regarding.name=${stack}` });
  return JSON.stringify(items);
}

/** Waits until there are events with these reasons: they are recorded a moment after the status. */
export async function untilEvents(place: Place, stack: string, ...reasons: readonly string[]): Promise<void> {
  const areRecorded = async (): Promise<boolean> => {
    const events = await eventsJson(place, stack);
    return reasons.every((reason) => events.includes(`"${reason}"`));
  };
  await waitFor(areRecorded, { timeoutMs: 60_000, what: `the events ${reasons.join(", ")} of ${stack}` });
}

/** An output from the Stack's Secret, which contains secret outputs in plain text. */
export async function readOutput(place: Place, stack: string, output: string): Promise<string> {
  return (await readSecret(place, `${stack}-outputs`))[output] ?? "";
}
