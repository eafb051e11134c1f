import { describe, expect, test } from "bun:test";

import { checkPlans } from "../testing/cases.ts";
import {
  ago,
  changed,
  given,
  noPreemptions,
  notReady,
  now,
  pod,
  podDown,
  podStarting,
  ready,
  set,
  shortage,
  status,
  unobservedSet,
  view,
  type Trait,
} from "../testing/views.ts";
import { planWorkspace } from "./index.ts";

const podOccupant = { kind: "Pod", namespace: "team", name: "web-workspace-0" };
const occupiedPod = (kind: "former" | "foreign"): Trait => {
  const owner = { kind: "StatefulSet", name: "web-workspace" };
  const occupant = kind === "former" ? { ...podOccupant, owner } : podOccupant;
  return given({ admission: { kind: "occupied", occupied: { kind, occupant } } });
};
const nameConflictReported: Trait = (each) => {
  const { conditions = [] } = notReady(60, "OwnershipConflict")(each).workspace.status ?? {};
  const stalled = conditions.map((ready) => ({ ...ready, type: "Stalled", status: "True" as const }));
  return status({ observedGeneration: 2, conditions: [...conditions, ...stalled] })(each);
};
const respondedPod: Trait = (each) => ({ ...each, ...(each.pod && { pod: { ...each.pod, isUp: true } }) });
const admitted = given({ admission: { kind: "admitted" } });

describe("a missing pod", () => {
  checkPlans({
    "is left to its StatefulSet for ten seconds": {
      when: [notReady(9), set()],
      outcome: "waiting",
      contains: "being created",
    },
    "is explained by a dry run after that": {
      when: [notReady(10), set()],
      steps: ["dryRunPod"],
      outcome: "waiting",
      contains: "being created",
    },
    "needs no dry run before the StatefulSet's controller has observed the template": {
      when: [notReady(60), unobservedSet],
      outcome: "waiting",
    },
    "is reported as being created if the dry run shows nothing": {
      when: [notReady(10), set(), given({ admission: { kind: "unknown" } })],
      outcome: "waiting",
      contains: "being created",
      requeueAfterMs: 5000,
    },
    "is checked with a dry run less often the longer it is missing": {
      when: [notReady(120), set(), given({ admission: { kind: "rejected", message: "exceeded quota: q" } })],
      outcome: "waiting",
      requeueAfterMs: 30_000,
    },
    "is checked with a dry run once a minute in the end": {
      when: [notReady(3600), set(), given({ admission: { kind: "rejected", message: "exceeded quota: q" } })],
      outcome: "waiting",
      requeueAfterMs: 60_000,
    },
    "is reported with the API server's reason if admission rejects it": {
      when: [notReady(), set(), given({ admission: { kind: "rejected", message: "exceeded quota: q" } })],
      outcome: "waiting",
      contains: "admission rejected the pod: exceeded quota",
    },
    "is blocked if a pod of another owner has its name": {
      when: [notReady(), set(), occupiedPod("foreign")],
      outcome: "blocked",
      contains: "Pod team/web-workspace-0 (without an owner) already exists",
      requeueAfterMs: 15_000,
    },
    "is checked less often, the longer its name is taken, whatever was reported before": {
      when: [notReady(), set(), occupiedPod("foreign"), given({ conflictSince: ago(120) })],
      outcome: "blocked",
      requeueAfterMs: 30_000,
    },
    "waits for the deletion of a pod of an earlier StatefulSet": {
      when: [notReady(), set(), occupiedPod("former")],
      outcome: "waiting",
      contains: "belonged to an earlier StatefulSet web-workspace",
    },
    "is created immediately when its name is free again": {
      when: [nameConflictReported, set(), admitted],
      steps: ["retryPodCreation"],
      outcome: "waiting",
    },
    "is left to its StatefulSet if its name was not taken": {
      when: [notReady(), set(), admitted],
      outcome: "waiting",
    },
  });
});

describe("a pod that is not up", () => {
  checkPlans({
    "is waited for while it starts": { when: [notReady(), set(), podDown()], outcome: "waiting", contains: "starting" },
    "is stuck if its image cannot be pulled": {
      when: [notReady(), set(), podDown("the image a cannot be pulled: denied")],
      outcome: "waiting",
      contains: '"isStuck":true',
    },
    "is checked less often, the longer it does not start": {
      when: [notReady(360), set(), podDown("the image a cannot be pulled: denied")],
      outcome: "waiting",
      requeueAfterMs: 90_000,
    },
    "is checked every two minutes in the end": {
      when: [notReady(3600), set(), podDown("the image a cannot be pulled: denied")],
      outcome: "waiting",
      requeueAfterMs: 120_000,
    },
    "is deleted if it is broken and of an old template, because its StatefulSet may wait for it": {
      when: [notReady(), set({ updateRevision: "two" }), podDown("the image a cannot be pulled: denied")],
      steps: ["deletePod"],
      outcome: "rolling",
      contains: "cannot be pulled",
    },
    "is waited for if it is terminating and of an old template": {
      when: [
        notReady(),
        set({ updateRevision: "two" }),
        podDown("the former pod is terminating", { isDeleting: true }),
      ],
      outcome: "rolling",
      contains: "terminating",
    },
    "is reported as unschedulable if no workspace is idle": {
      when: [notReady(), set(), podDown("no node can take the pod: cpu", { isUnschedulable: true })],
      outcome: "waiting",
      contains: "no node can take the pod",
    },
    "has the workspace reconciled that makes room for it, if it is unschedulable": {
      when: [ready(), shortage("a"), notReady(10), set(), podDown("no node", { isUnschedulable: true })],
      steps: ["reconcileOther"],
      outcome: "waiting",
      contains: "idle workspaces are being scaled to zero",
      requeueAfterMs: 5000,
    },
    "is checked again with the next plan, if it became unschedulable after the last one was made": {
      when: [
        notReady(3600),
        given({ preemptions: { ...noPreemptions, planned: new Set(), renewedAt: now + 800 } }),
        set(),
        podDown("no node", { isUnschedulable: true }),
      ],
      outcome: "waiting",
      requeueAfterMs: 800,
    },
    "is checked at least every 15 seconds while it is unschedulable, because others may become idle": {
      when: [notReady(3600), set(), podDown("no node", { isUnschedulable: true })],
      outcome: "waiting",
      requeueAfterMs: 15_000,
    },
    "is contacted when its agent is about to start, before the kubelet reports it": {
      when: [notReady(), set(), podStarting],
      steps: ["prepare"],
      outcome: "waiting",
      contains: "the pod is starting",
    },
  });
});

describe("a pod that is up", () => {
  checkPlans({
    "is replaced by its StatefulSet if it is of an old template": {
      when: [notReady(), set({ updateRevision: "two" }), pod()],
      outcome: "rolling",
    },
    "is prepared if its agent has responded, although the kubelet does not report yet that it runs": {
      when: [notReady(), set(), podStarting, respondedPod],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "is prepared": { when: [notReady(), set(), pod()], steps: ["prepare"], outcome: "preparing" },
    "is sent the same request again once it is prepared, which costs nothing": {
      when: [ready(), set(), pod()],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "is prepared for a new spec": {
      when: [ready(), changed, set(), pod()],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "is prepared although there is no status yet": { when: [pod(), set()], steps: ["prepare"], outcome: "preparing" },
  });
});

test("an unknown status of an earlier operator does no harm", () => {
  const odd = status({ conditions: [], address: "host:50051" });
  expect(planWorkspace(view(odd, set(), pod())).steps.map(({ kind }) => kind)).toEqual(["prepare"]);
});
