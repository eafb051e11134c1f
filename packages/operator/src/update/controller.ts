/** The Update controller: what it watches, and its definition for the engine. */
import { fieldManagers, isComplete, type Approval, type Stack, type Update, type Workspace } from "@pko/api";
import {
  controller,
  keyOf,
  metricsRegistry,
  reconciler,
  watching,
  type Client,
  type Clock,
  type Controller,
  type EventRecorder,
  type Key,
  type ApiObject,
  type Logger,
  type Reconcile,
  type Reflector,
  type Registry,
} from "@pko/kube";
import type { Pod } from "kubernetes-types/core/v1";

import type { Projects, Runs } from "../agents/agents.ts";
import { updates as updateResource } from "../kinds.ts";
import type { PolicyProbe } from "../approvals/policy-probe.ts";
import { planKeyOf } from "../shared/approvals.ts";
import { progressMs } from "../shared/pauses.ts";
import { unlimitedSlots, type Slots } from "../shared/channels/slots.ts";
import { tracedLogKeys, updateLogKeys } from "../shared/log-keys.ts";
import type { UpdateTraces } from "../shared/traces/update-traces.ts";
import { uidIndex, workspaceIndex, workspaceKeyOf } from "../shared/updates.ts";
import { classReader, type ClassReflectors } from "../shared/workspace-classes.ts";
import { workspaceOfPod } from "../shared/pods/workspace-pod.ts";
import { updateEvents } from "./events.ts";
import { observeUpdate, type UpdateWorld } from "./observe/index.ts";
import type { Outcome } from "./outcome.ts";
import type { Step } from "./steps.ts";
import { performUpdate } from "./perform/index.ts";
import { settleClaims } from "./perform/slot.ts";
import { awaitsApproval } from "./rules/approval.ts";
import { planUpdate } from "./rules/index.ts";
import { statusWithoutMessages, updateStatus, withoutProgress } from "./status.ts";
import type { UpdateView } from "./view.ts";

interface UpdateControllerOptions {
  /** Must be fenced: it writes nothing unless this process leads. */
  readonly client: Client;
  readonly runs: Runs;
  readonly events: EventRecorder;
  /** With `updateIndexers`. */
  readonly updates: Reflector<Update>;
  readonly workspaces: Reflector<Workspace>;
  /** Those of workspaces. */
  readonly pods: Reflector<ApiObject<Pod>>;
  readonly stacks: Reflector<Stack>;
  /** With `approvalIndexers`. */
  readonly approvals: Reflector<Approval>;
  readonly approvalPolicy: Pick<PolicyProbe, "state" | "need">;
  /** Absent where the operator may not read classes. */
  readonly workspaceClasses?: ClassReflectors | undefined;
  readonly projects: Projects;
  /** Without it, an Update may start as soon as its Workspace is ready. */
  readonly clearances?: UpdateWorld["clearances"];
  /** Unlimited if absent. */
  readonly slots?: Slots;
  readonly lostNodeAfterMs?: UpdateWorld["lostNodeAfterMs"];
  /** Absent if traces are off. */
  readonly traces?: UpdateTraces | undefined;
  readonly concurrency?: number;
  readonly log?: Logger;
  readonly metrics?: Registry;
  readonly clock?: Clock;
}

export interface UpdateController extends Controller {
  /** For `runs`: the state of this run has changed. */
  wakeRun(runId: string): void;
}

export function updateController(options: UpdateControllerOptions): UpdateController {
  const { updates, workspaces, pods, runs, concurrency, log, metrics, clock } = options;
  const inWorkspace = (key: Key | undefined): Key[] =>
    key === undefined
      ? []
      : updates.store
          .activeByIndex(workspaceIndex, key)
          .filter((update) => !isComplete(update))
          .map(keyOf);
  const waitingForDecision = (approval: Approval | undefined): Key[] => {
    const plan = approval && updates.store.get(planKeyOf(approval));
    return inWorkspace(plan && workspaceKeyOf(plan));
  };
  const inner = controller<Update>({
    name: "update-controller",
    reflector: updates,
    watches: [
      watching({ reflector: workspaces, map: ({ key }) => inWorkspace(key) }),
      watching({ reflector: pods, map: ({ before, after }) => inWorkspace(podWorkspace(after ?? before)) }),
      // A Workspace has the name of its Stack.
      watching({ reflector: options.stacks, map: ({ key }) => inWorkspace(key) }),
      watching({ reflector: options.approvals, map: ({ before, after }) => waitingForDecision(after ?? before) }),
      // The Updates that wait for this one in the same workspace.
      watching({ reflector: updates, map: ({ before, after }) => inWorkspace(endedIn(after, before)) }),
    ],
    logKeys: (name, update) => ({ ...updateLogKeys(name, update), ...tracedLogKeys(options.traces, update) }),
    reconcile: updateReconciler(options, (key) => inner.enqueue(key)),
    whileRunning: () =>
      updates.store.subscribe(({ before, after }) => {
        const uid = before?.metadata.uid;
        // Deleted without its finalizer, while its run may be active.
        if (uid === undefined || after?.metadata.uid === uid) return;
        runs.forget(uid);
        options.traces?.forget(uid);
      }),
    ...(concurrency !== undefined && { concurrency }),
    ...(log && { log }),
    ...(metrics && { metrics }),
    ...(clock && { clock }),
  });
  return Object.assign(inner, {
    wakeRun(runId: string): void {
      for (const update of updates.store.byIndex(uidIndex, runId)) inner.enqueue(keyOf(update));
    },
  });
}

/** They change no object. */
const quietSteps: ReadonlySet<Step["kind"]> = new Set<Step["kind"]>([
  "claimSlot",
  "giveUpSlot",
  "confirmReady",
  "confirmPodDeleted",
  "confirmStackUnknown",
  "confirmApproval",
  "readPlan",
  "attachRun",
  "cancelRun",
  "forgetRun",
]);

function updateReconciler(options: UpdateControllerOptions, wake: (key: Key) => void): Reconcile {
  const { client, clock, runs, events, projects, clearances, lostNodeAfterMs, traces } = options;
  const { metrics = metricsRegistry(), slots = unlimitedSlots } = options;
  const world: UpdateWorld = {
    updates: options.updates.store,
    workspaces: options.workspaces.store,
    pods: options.pods.store,
    stacks: options.stacks.store,
    approvals: options.approvals.store,
    approvalPolicy: options.approvalPolicy,
    classOf: classReader(options.workspaceClasses),
    runs,
    projects,
    slots,
    ...(clearances && { clearances }),
    ...(lostNodeAfterMs !== undefined && { lostNodeAfterMs }),
    ...(traces && { traces }),
  };
  const records = metrics.counter({
    name: "update_records_total",
    help: "Records of runs, by result: stored or failed.",
    labels: ["result"],
  });
  return reconciler<Update, UpdateView, Step, Outcome, never>({
    resource: updateResource,
    client,
    fieldManager: fieldManagers.updateStatus,
    events,
    quietSteps,
    observe: (key, moment) => observeUpdate(world, key, moment),
    objectIn: ({ update }) => update,
    plan: planUpdate,
    perform: (step, context) => performUpdate({ client, runs, slots, clock }, step, context),
    status: updateStatus,
    progress: { without: withoutProgress, everyMs: progressMs.run },
    fallbackStatus: (view, { outcome }, { explanation }) =>
      outcome.kind === "ended"
        ? { status: statusWithoutMessages(view, outcome.ending), facts: { statusRejection: explanation } }
        : undefined,
    eventsOf: updateEvents,
    publish(key, { view, plan: { steps, outcome }, log, reconcileID }) {
      const { update, recordFailure } = view;
      const loud = steps.flatMap(({ kind }) => (quietSteps.has(kind) ? [] : [kind]));
      traces?.updatePassed(update, { kind: "Update", reconcileID, startMs: view.now, steps: loud });
      if (outcome.kind === "waiting") settleClaims({ slots, view });
      if (awaitsApproval(view)) options.approvalPolicy.need(update.metadata.namespace ?? "", () => wake(key));
      if (outcome.kind !== "ended") return;
      if (steps.some(({ kind }) => kind === "storeRecord")) {
        records.increment({ result: recordFailure === undefined ? "stored" : "failed" });
      }
      traces?.updateEnded(update, outcome.ending);
      log.info("update ended", { reason: outcome.ending.reason, operation: update.spec?.type });
    },
  });
}

function podWorkspace(pod: ApiObject<Pod> | undefined): Key | undefined {
  return pod && workspaceOfPod(pod);
}

/** The workspace in which an Update has just ended or was deleted, so that the next may start. */
function endedIn(after: Update | undefined, before: Update | undefined): Key | undefined {
  if (!before || isComplete(before)) return undefined;
  return !after || isComplete(after) ? workspaceKeyOf(before) : undefined;
}
