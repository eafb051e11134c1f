/** The state of every Stack as gauges: those of the Go operator, with the same series, and one for each other state. */
import type { Stack, StackReason } from "@pko/api";
import { refKey, type Registry, type Store } from "@pko/kube";

import { approvalPolicyOf } from "../shared/approvals.ts";
import { driftCount } from "../shared/drift.ts";
import { findCondition, isConditionTrue } from "../shared/objects/conditions.ts";
import { parseTimestamp } from "../shared/parse-timestamp.ts";
import { isPullRequestPreview } from "../shared/pull-request-preview.ts";
import type { Suspension } from "../shared/channels/suspension.ts";
import { stackNamesIn } from "./messages.ts";
import { suspendedBy } from "./view.ts";

export interface MeteredWorld {
  readonly stacks: Pick<Store<Stack>, "list" | "get">;
  readonly suspension: Pick<Suspension, "isOn">;
}

interface StackGauge {
  readonly name: string;
  readonly help: string;
  /** Undefined if the Stack has no series. */
  readonly read: (stack: Stack, world: MeteredWorld) => number | boolean | undefined;
  /** A label besides the Stack's namespace and name. */
  readonly label?: { readonly name: string; readonly read: (stack: Stack) => string | undefined };
}

const gauges: readonly StackGauge[] = [
  {
    name: "stacks_failing",
    help: "1 for a Stack whose last update failed.",
    // A Stack without a finished update has no series.
    read: ({ status }) => (status?.lastUpdate?.state ? status.lastUpdate.state === "failed" : undefined),
  },
  {
    name: "stacks_reconciling",
    help: "1 for a Stack that is being worked on.",
    read: (stack) => isConditionTrue(stack, "Reconciling"),
  },
  {
    name: "stack_waiting_since_timestamp_seconds",
    help: "The Unix time since which a Stack has been waiting for the same thing, such as the end of an update, by reason.",
    read: (stack) => waitingSince(stack),
    label: { name: "reason", read: (stack) => findCondition(stack, "Reconciling")?.reason },
  },
  {
    name: "stacks_stalled",
    help: "1 for a Stack that is stalled, by reason.",
    // Only stalled Stacks have a series: one for each possible reason would be too many.
    read: (stack) => (isConditionTrue(stack, "Stalled") ? 1 : undefined),
    label: { name: "reason", read: (stack) => findCondition(stack, "Stalled")?.reason },
  },
  {
    name: "stack_consecutive_failures",
    help: "How many consecutive updates of a failing Stack have failed, by class of the last failure.",
    read: ({ status }) => (status?.lastUpdate?.state === "failed" ? status.lastUpdate.failures : undefined),
    label: { name: "class", read: ({ status }) => status?.lastUpdate?.failure },
  },
  {
    name: "stacks_drifted",
    help: "1 for a Stack whose resources have drifted.",
    read: isDrifted,
  },
  {
    name: "stack_drift_check_failures",
    help: "How many consecutive drift checks of a Stack have failed.",
    // After an update with a refresh, the result is known although no check has succeeded.
    read: (stack) =>
      findCondition(stack, "Drifted")?.status === "Unknown" ? stack.status?.drift?.failures : undefined,
  },
  {
    name: "stacks_suspended",
    help: "1 for a Stack that is suspended, by its spec or with the whole operator.",
    read: isSuspended,
  },
  {
    name: "stacks_awaiting_approval",
    help: "1 for a Stack whose changes wait for an approval.",
    // Only Stacks that require approvals have a series, and those that wait because their WorkspaceClass requires one.
    read: (stack) => isReconcilingFor(stack, "AwaitingApproval") || (approvalPolicyOf(stack) ? false : undefined),
  },
  {
    name: "stacks_outside_update_window",
    help: "1 for a Stack whose update is due and waits for an update window.",
    // Only Stacks with update windows have a series.
    read: (stack) => (hasUpdateWindows(stack) ? isReconcilingFor(stack, "OutsideUpdateWindow") : undefined),
  },
  {
    name: "stacks_paused",
    help: "1 for a Stack that is suspended, or waits for an approval, an update window or another Stack that is itself paused.",
    read: (stack, world) => isPaused(stack, world) || undefined,
  },
];

export function exposeStackGauges(registry: Registry, world: MeteredWorld): void {
  const { stacks } = world;
  const active = registry.gauge({ name: "stacks_active", help: "Stacks that exist." });
  registry.onCollect(() => active.set({}, stacks.list().length));
  for (const { name, help, read, label } of gauges) {
    const labels = ["namespace", "name", ...(label ? [label.name] : [])];
    // Without a limit: an alert must not miss a Stack.
    const gauge = registry.gauge<string>({ name, help, labels, maxSeries: Infinity });
    registry.onCollect(() => {
      gauge.clear();
      for (const stack of stacks.list()) {
        // A pull request that fails is not an incident: `pull_request_previews` counts it.
        if (isPullRequestPreview(stack)) continue;
        const value = read(stack, world);
        if (value === undefined) continue;
        const { namespace = "", name: stackName = "" } = stack.metadata;
        const more = label && { [label.name]: label.read(stack) ?? "other" };
        gauge.set({ namespace, name: stackName, ...more }, Number(value));
      }
    });
  }
}

/** Not the transition time of the condition: a Stack may have waited for an approval before, and be running now. */
function waitingSince(stack: Stack): number | undefined {
  const since = parseTimestamp(stack.status?.waiting?.since);
  return since === undefined || !isConditionTrue(stack, "Reconciling") ? undefined : since / 1000;
}

/** A Stack that was never checked has no series. After a failed check, what the last successful one found still applies. */
function isDrifted(stack: Stack): boolean | undefined {
  const drifted = findCondition(stack, "Drifted");
  return drifted?.status === "Unknown"
    ? driftCount(stack.status?.drift ?? { resources: [] }) > 0
    : drifted && drifted.status === "True";
}

function isSuspended(stack: Stack, { suspension }: MeteredWorld): boolean {
  return suspendedBy({ stack, operatorSuspended: suspension.isOn }).length > 0;
}

/** `visited`: Stacks may wait for each other. */
function isPaused(stack: Stack, world: MeteredWorld, visited = new Set<Stack>()): boolean {
  if (visited.has(stack)) return false;
  visited.add(stack);
  const isItself =
    isSuspended(stack, world) ||
    isReconcilingFor(stack, "AwaitingApproval") ||
    isReconcilingFor(stack, "OutsideUpdateWindow");
  return isItself || awaitedStacks(stack, world).some((each) => isPaused(each, world, visited));
}

/** The Stacks for which it waits: not all on which it depends. */
function awaitedStacks(stack: Stack, { stacks }: MeteredWorld): Stack[] {
  if (!isReconcilingFor(stack, "PrerequisiteNotSatisfied") && !isReconcilingFor(stack, "WaitingForDependents"))
    return [];
  const { namespace = "" } = stack.metadata;
  return stackNamesIn(stack.status?.waiting?.for ?? "").flatMap(
    (name) => stacks.get(refKey({ namespace, name })) ?? [],
  );
}

function isReconcilingFor(stack: Stack, reason: StackReason<"Reconciling">): boolean {
  return isConditionTrue(stack, "Reconciling") && findCondition(stack, "Reconciling")?.reason === reason;
}

function hasUpdateWindows({ spec }: Stack): boolean {
  const known: Partial<Stack["spec"]> | undefined = spec;
  return (known?.updateWindows ?? []).length > 0;
}
