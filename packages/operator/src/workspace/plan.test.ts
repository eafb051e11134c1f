import { describe, expect, test } from "bun:test";

import type { PrepareFailure } from "@pko/rpc";

import type { Preparation } from "../agents/agents.ts";
import { conclude, planWorkspace, retryAfterMs, type Performed, type Step } from "./plan.ts";
import { statusOf } from "./status.ts";
import {
  ago,
  changed,
  deleted,
  given,
  input,
  notReady,
  now,
  pod,
  podComing,
  podDown,
  ready,
  set,
  specified,
  status,
  unseenSet,
  update,
  view,
  withoutAddress,
  type Trait,
} from "./testing/views.ts";

interface Case {
  readonly when: readonly Trait[];
  readonly does?: readonly Step["kind"][];
  readonly is: string;
  /** Words of its message, or of its outcome. */
  readonly says?: string;
  readonly looksAgainMs?: number;
}

function check(cases: Readonly<Record<string, Case>>): void {
  for (const [name, { when, does = [], is, says = "", looksAgainMs }] of Object.entries(cases)) {
    test(name, () => {
      const plan = planWorkspace(view(...when));
      expect(plan.steps.map(({ kind }) => kind)).toEqual([...does]);
      expect(plan.outcome.kind).toBe(is as never);
      expect(JSON.stringify(plan.outcome)).toContain(says);
      if (looksAgainMs !== undefined) expect(plan.lookAt).toBe(now + looksAgainMs);
    });
  }
}

const certificate = given({ certificate: "expiring" });
const missingSecret = input({
  missing: ['Secret "a" does not exist; the variable A of the container pulumi needs it'],
});
const podOf = { kind: "Pod", namespace: "team", name: "web-workspace-0" };
const occupiedPod = (kind: "former" | "foreign"): Trait => {
  const owner = { kind: "StatefulSet", name: "web-workspace" };
  const occupant = kind === "former" ? { ...podOf, owner } : podOf;
  return input({ admission: { kind: "occupied", occupied: { kind, occupant } } });
};
const nameOccupied: Trait = (each) => {
  const { conditions = [] } = notReady(60, "OwnershipConflict")(each).workspace.status ?? {};
  const stalled = conditions.map((ready) => ({ ...ready, type: "Stalled", status: "True" as const }));
  return status({ observedGeneration: 2, conditions: [...conditions, ...stalled] })(each);
};
const atRisk = input({ losable: "/state" });
const noSource = input({ requested: { ok: false, message: 'Program "web" does not exist', soon: true } });

const overdue = (seconds: number) => ({
  overdue: { namespace: "team", name: "web-workspace-0", node: "worker-2", since: ago(seconds) },
});
const ending = { isDeleting: true, endingSince: ago(900) };

describe("a pod whose node may be lost", () => {
  check({
    "that does not end: it is reported with the fix, and nothing is done about it": {
      when: [notReady(), pod({ ...ending, ...overdue(300) }), set(), update("waiting")],
      is: "nodeLost",
      says: "kubectl delete pod web-workspace-0 -n team --force --grace-period=0",
    },
    "that is silent: it is reported, though its last status says that it runs": {
      when: [ready(), pod(overdue(300)), set()],
      is: "nodeLost",
      says: "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
    },
    "for less than the time: it is looked at when that is over": {
      when: [notReady(), pod({ ...ending, endingSince: ago(30), ...overdue(290) }), set(), update("waiting")],
      is: "rolling",
      looksAgainMs: 10_000,
    },
    "with a run in it: that is the Update's to report": {
      when: [ready(), pod(overdue(3600)), set(), update("onPod")],
      is: "unchanged",
    },
    "of a workspace that is asleep: nobody waits for it": {
      when: [ready(), withoutAddress, pod({ ...ending, ...overdue(3600) }), set({ replicas: 0 })],
      does: ["deletePod"],
      is: "asleep",
    },
  });
});

describe("a workspace that is going or wrong", () => {
  check({
    "deleted: it is only forgotten": { when: [deleted, pod(), set()], does: ["forget"], is: "deleting" },
    "deleted while an Update runs: that is the Update's affair": {
      when: [deleted, pod(), set(), update("onPod")],
      does: ["forget"],
      is: "deleting",
    },
    "deleted with a bad spec: it is going all the same": {
      when: [specified({ git: {} }), deleted],
      does: ["forget"],
      is: "deleting",
    },
    "two sources: refused with the field": {
      when: [specified({ local: { dir: "/a" }, flux: { url: "http://h/a", digest: "sha256:a" } })],
      is: "refused",
      says: "spec: the program has more than one source",
    },
    "an unknown profile": {
      when: [specified({ securityProfile: "none" })],
      is: "refused",
      says: "spec.securityProfile",
    },
    "a bad spec over a pod that is up: nothing is touched": {
      when: [specified({ securityProfile: "none" }), pod(), set()],
      is: "refused",
    },
    "a template that takes the host's network": {
      when: [
        specified({ podTemplate: { spec: { hostNetwork: true } }, stacks: [{ name: "a" }], local: { dir: "/a" } }),
      ],
      is: "refused",
      says: "spec.podTemplate.spec.hostNetwork is true",
    },
    "a template that removes the Pulumi container": {
      when: [
        specified({
          podTemplate: { spec: { containers: [{ name: "pulumi", $patch: "delete" }] } },
          stacks: [{ name: "a" }],
          local: { dir: "/a" },
        }),
      ],
      is: "refused",
      says: "the container pulumi is removed",
    },
    "a template whose element has no name": {
      when: [specified({ podTemplate: { spec: { containers: [{ image: "x" }] } } })],
      is: "refused",
      says: "spec.podTemplate.spec.containers: an element has no name",
    },
    "a Service template that cannot be merged": {
      when: [specified({ serviceTemplate: { spec: { ports: [{ name: "x" }] } } })],
      is: "refused",
      says: "spec.serviceTemplate.spec.ports: an element has no port",
    },
    "a Program that is not there yet: looked for again soon": {
      when: [noSource],
      is: "refused",
      says: "does not exist",
      looksAgainMs: 5000,
    },
    "a Program that is gone since: what is prepared stays good": {
      when: [noSource, ready(), pod(), set()],
      is: "unchanged",
    },
    "a Program that is gone, in a pod that was not prepared": {
      when: [noSource, notReady(), pod(), set()],
      is: "refused",
    },
    "a Program that is gone since, and nothing to do: it still goes to sleep": {
      when: [noSource, ready(700), withoutAddress, pod(), set()],
      does: ["sleep", "forget"],
      is: "asleep",
    },
  });
});

/** As after a start. */
const forgetful: Trait = (each) => {
  const { writtenGeneration: _, ...rest } = each;
  return rest;
};

describe("the objects", () => {
  check({
    "nothing there: all are written": { when: [], does: ["applyObjects"], is: "waiting", says: "being made" },
    "no certificate: that comes first": {
      when: [certificate],
      does: ["issueCertificate", "applyObjects"],
      is: "waiting",
    },
    "another template: they are written": {
      when: [notReady(), set({ builtHash: "old" }), pod()],
      does: ["applyObjects"],
      is: "rolling",
      says: "being replaced",
    },
    "another template, and the pod is ending already": {
      when: [notReady(), set({ builtHash: "old" }), pod({ isDeleting: true })],
      does: ["applyObjects"],
      is: "waiting",
    },
    "somebody has changed them: they are written once more": {
      when: [ready(), set({ generation: 2 }), pod()],
      does: ["mendStatefulSet"],
      is: "unchanged",
      looksAgainMs: 0,
    },
    "somebody has broken them: the pod that does not come up is not waited for": {
      when: [notReady(), set({ generation: 2 }), podDown("no such image")],
      does: ["mendStatefulSet"],
      is: "unchanged",
    },
    "whoever was here before may have missed a change: they are written once more": {
      when: [ready(), set(), pod(), forgetful],
      does: ["mendStatefulSet"],
      is: "unchanged",
    },
    "nobody has said anything yet of what is there": {
      when: [set(), forgetful],
      does: ["mendStatefulSet"],
      is: "waiting",
    },
    "our own change is not seen yet: nothing is written twice": {
      when: [ready(), set(), pod(), given({ writtenGeneration: 2 })],
      does: ["prepare"],
      is: "preparing",
    },
    "changed by somebody while an Update runs: that comes first": {
      when: [ready(), set({ generation: 2 }), pod(), update("onPod")],
      is: "unchanged",
    },
    "another template, nothing to do, though ready: no need to wait": {
      when: [ready(), set({ builtHash: "old" }), pod()],
      does: ["applyObjects"],
      is: "rolling",
    },
    "another template, and an Update waits that may be about to begin: first the word": {
      when: [ready(), set({ builtHash: "old" }), pod(), update("waiting")],
      is: "rolling",
      says: "about to be replaced",
      looksAgainMs: 2000,
    },
    "the word was given just now: a moment more": {
      when: [notReady(1, "RollingUpdate"), set({ builtHash: "old" }), pod(), update("waiting")],
      is: "rolling",
      says: "about to be replaced",
    },
    "the word was given: now the deed": {
      when: [notReady(3, "RollingUpdate"), set({ builtHash: "old" }), pod(), update("waiting")],
      does: ["applyObjects"],
      is: "rolling",
    },
    "an Update waits, and the pod of the old template is not up: no word is needed": {
      when: [ready(), set({ builtHash: "old" }), podDown(), update("waiting")],
      does: ["applyObjects"],
      is: "rolling",
    },
    "the StatefulSet is being deleted: it is waited for": {
      when: [set({ builtHash: "old", isDeleting: true })],
      is: "waiting",
      says: "former StatefulSet",
    },
    "its controller has not seen the new template: the pod is not trusted": {
      when: [notReady(), unseenSet, pod()],
      is: "rolling",
    },
    "its controller has not seen it, and there is no pod yet": { when: [notReady(), unseenSet], is: "waiting" },
    "a Secret is missing: no pod is made that could not start": {
      when: [missingSecret],
      is: "waiting",
      says: 'Secret \\"a\\" does not exist',
      looksAgainMs: 5000,
    },
    "two are missing: one is named, the other counted": {
      when: [input({ missing: ["one", "two"] })],
      is: "waiting",
      says: "one (and 1 more)",
    },
    "a Secret is missing that a pod has read: the pod is not replaced for that": {
      when: [missingSecret, ready(), pod(), set({ builtHash: "with the Secret" })],
      does: ["prepare"],
      is: "preparing",
    },
    "a Secret is missing, and the pod waits for it": {
      when: [missingSecret, notReady(), podDown(), set()],
      is: "waiting",
      says: "does not exist",
    },
    "a certificate is old, and all is well besides": {
      when: [certificate, ready(), pod(), set()],
      does: ["issueCertificate", "prepare"],
      is: "preparing",
    },
    "a certificate is old, and the pod is not up": {
      when: [certificate, notReady(), podDown(), set()],
      does: ["issueCertificate"],
      is: "waiting",
    },
  });
});

describe("the pod", () => {
  check({
    "is not there yet": { when: [notReady(), set()], is: "waiting", says: "being made" },
    "is not let in: the API server's words": {
      when: [notReady(), set(), input({ admission: { kind: "rejected", message: "exceeded quota: q" } })],
      is: "waiting",
      says: "not let in: exceeded quota",
    },
    "cannot be created, because somebody else's has its name": {
      when: [notReady(), set(), occupiedPod("foreign")],
      is: "blocked",
      says: "Pod team/web-workspace-0 (without an owner) already exists",
      looksAgainMs: 15_000,
    },
    "is checked less often, the longer its name is occupied, whatever was reported before": {
      when: [notReady(), set(), occupiedPod("foreign"), given({ conflictSince: ago(120) })],
      is: "blocked",
      looksAgainMs: 30_000,
    },
    "of an earlier StatefulSet is waited for": {
      when: [notReady(), set(), occupiedPod("former")],
      is: "waiting",
      says: "belonged to an earlier StatefulSet web-workspace",
    },
    "is created at once when its name is free again": {
      when: [nameOccupied, set(), input({ admission: { kind: "admitted" } })],
      does: ["retryPod"],
      is: "waiting",
    },
    "is left to its StatefulSet where nothing was in the way": {
      when: [notReady(), set(), input({ admission: { kind: "admitted" } })],
      is: "waiting",
    },
    "is starting": { when: [notReady(), set(), podDown()], is: "waiting", says: "starting" },
    "cannot pull its image": {
      when: [notReady(), set(), podDown("the image a cannot be pulled: denied")],
      is: "waiting",
      says: '"isStuck":true',
    },
    "of an old template is broken: it is deleted, since its StatefulSet may wait for it": {
      when: [notReady(), set({ updateRevision: "two" }), podDown("the image a cannot be pulled: denied")],
      does: ["deletePod"],
      is: "rolling",
      says: "cannot be pulled",
    },
    "of an old template is up: its StatefulSet replaces it": {
      when: [notReady(), set({ updateRevision: "two" }), pod()],
      is: "rolling",
    },
    "of an old template is ending": {
      when: [notReady(), set({ updateRevision: "two" }), podDown("the former pod is ending", { isDeleting: true })],
      is: "rolling",
      says: "ending",
    },
    "is ending": { when: [ready(), set(), pod({ isDeleting: true })], is: "rolling" },
    "has been ending for too long, without a run: its grace is cut short": {
      when: [ready(), set(), pod({ isDeleting: true, endingSince: ago(61) })],
      does: ["deletePod"],
      is: "rolling",
    },
    "has been ending for a while": {
      when: [ready(), set(), pod({ isDeleting: true, endingSince: ago(59) })],
      is: "rolling",
    },
    "has been ending for long, with a run: that has its grace": {
      when: [ready(), set(), pod({ isDeleting: true, endingSince: ago(300) }), update("onPod")],
      is: "rolling",
    },
    "is up: it is prepared": { when: [notReady(), set(), pod()], does: ["prepare"], is: "preparing" },
    "is up and prepared: the same is asked again, which costs nothing": {
      when: [ready(), set(), pod()],
      does: ["prepare"],
      is: "preparing",
    },
    "is up, and the spec is new: it is prepared for that": {
      when: [ready(), changed, set(), pod()],
      does: ["prepare"],
      is: "preparing",
    },
    "finds no node, and nobody is idle": {
      when: [notReady(), set(), podDown("no node can take the pod: cpu", { isUnschedulable: true })],
      is: "waiting",
      says: "no node can take the pod",
    },
    "finds no node: the longest idle are looked at": {
      when: [
        notReady(),
        set(),
        podDown("no node", { isUnschedulable: true }),
        given({ yielding: ["a/idle", "b/idle"] }),
      ],
      does: ["look", "look"],
      is: "waiting",
      says: "idle workspaces make room",
      looksAgainMs: 5000,
    },
    "is about to begin: its agent is asked before the kubelet tells": {
      when: [notReady(), set(), podComing],
      does: ["prepare"],
      is: "waiting",
      says: "the pod is starting",
    },
    "is there, though nothing was ever written of it": { when: [pod(), set()], does: ["prepare"], is: "preparing" },
  });
});

describe("an Update that runs", () => {
  check({
    "is left alone": { when: [ready(), set(), pod(), update("onPod")], is: "unchanged" },
    "that the agent cannot start is prepared for, in the same pod": {
      when: [ready(), set({ builtHash: "old" }), pod(), update("onPod", { isUnprepared: true })],
      does: ["prepare"],
      is: "preparing",
    },
    "that the agent cannot start waits for what is missing": {
      when: [ready(), noSource, set(), pod(), update("onPod", { isUnprepared: true })],
      is: "refused",
      says: 'Program \\"web\\" does not exist',
    },
    "is left alone, but for a certificate of a CA that has been replaced": {
      when: [given({ certificate: "issuerReplaced" }), ready(), set(), pod(), update("onPod")],
      does: ["issueCertificate"],
      is: "unchanged",
    },
    "has its certificate renewed while a new spec waits for its end": {
      when: [certificate, ready(), changed, set(), pod(), update("onPod")],
      does: ["issueCertificate"],
      is: "held",
    },
    "has its certificate renewed though the new spec is invalid": {
      when: [specified({ git: {} }), given({ certificate: "trustOutdated" }), set(), pod(), update("onPod")],
      does: ["issueCertificate"],
      is: "refused",
    },
    "is requeued though the new spec is invalid: its certificate has to be renewed in time": {
      when: [specified({ git: {} }), given({ certificate: "current" }), set(), pod(), update("onPod")],
      is: "refused",
      looksAgainMs: 60_000,
    },
    "keeps a certificate that serves": {
      when: [given({ certificate: "current" }), ready(), set(), pod(), update("onPod")],
      is: "unchanged",
    },
    "is left alone though the template has changed": {
      when: [ready(), set({ builtHash: "old" }), pod(), update("onPod")],
      is: "unchanged",
    },
    "holds a new spec back, and status says so": {
      when: [ready(), changed, set(), pod(), update("onPod")],
      is: "held",
      says: "the new spec waits for the end of the update onPod-0",
    },
    "holds a workspace back that was not ready": {
      when: [notReady(), set(), pod(), update("onPod")],
      is: "held",
      says: "the workspace waits",
    },
    "in a pod that is down for a while: it may come up again": {
      when: [notReady(30), set({ builtHash: "old" }), podDown("it ran out of memory"), update("onPod")],
      is: "waiting",
      says: "out of memory",
    },
    "in a pod that stays down: a better template is not held back": {
      when: [notReady(300), set({ builtHash: "old" }), podDown("it ran out of memory"), update("onPod")],
      does: ["applyObjects"],
      is: "rolling",
    },
    "in a pod that is ending does not hold what follows": {
      when: [notReady(), set(), podDown("the former pod is ending", { isDeleting: true }), update("onPod")],
      is: "rolling",
    },
    "in a pod that is gone does not hold what follows": { when: [notReady(), set(), update("waiting")], is: "waiting" },
    "keeps its pod from sleep": { when: [ready(9999), set(), pod(), update("onPod")], is: "unchanged" },
  });
});

describe("sleep", () => {
  const idleFor = (seconds: number): Trait[] => [ready(seconds), withoutAddress, set(), pod()];
  const failing = (seconds: number): Trait[] => [
    notReady(seconds, "InstallationFailed"),
    set(),
    pod(),
    given({ retryAt: now + 60_000 }),
  ];
  const putAway: Trait[] = [notReady(999, "InstallationFailed"), set({ replicas: 0, putAwayFor: 2 })];
  check({
    "comes when it has been idle for its timeout: first its address goes": {
      when: [ready(601), set(), pod()],
      is: "asleep",
      looksAgainMs: 2000,
    },
    "then its pod": { when: idleFor(601), does: ["sleep", "forget"], is: "asleep" },
    "does not come before": { when: [ready(599), set(), pod()], does: ["prepare"], is: "preparing" },
    "counts from the end of the last Update": {
      when: [ready(5000), set(), pod(), update("ended", { endedAt: ago(10) }), update("ended", { endedAt: ago(900) })],
      does: ["prepare"],
      is: "preparing",
    },
    "comes after the last Update": {
      when: [ready(5000), set(), pod(), update("ended", { endedAt: ago(700) }), update("ended", { endedAt: ago(900) })],
      is: "asleep",
    },
    "never comes with a timeout of 0": {
      when: [ready(99_999), set(), pod(), given({ idleTimeoutMs: 0 })],
      does: ["prepare"],
      is: "preparing",
    },
    "comes at its own time": { when: [ready(61), set(), pod(), given({ idleTimeoutMs: 60_000 })], is: "asleep" },
    "does not come while an Update waits": {
      when: [ready(5000), set(), pod(), update("waiting")],
      does: ["prepare"],
      is: "preparing",
    },
    "an Update that came between address and pod wakes it": {
      when: [...idleFor(601), update("waiting")],
      does: ["prepare"],
      is: "preparing",
    },
    "does not come before it was ready": { when: [notReady(9999), set(), pod()], does: ["prepare"], is: "preparing" },
    "comes for what fails to be prepared, as long after that: the failure stands": {
      when: failing(601),
      does: ["sleep", "forget"],
      is: "unchanged",
    },
    "not before": { when: failing(599), does: ["prepare"], is: "preparing" },
    "not while it is tried again": {
      when: [...failing(9999), given({ retryAt: Infinity })],
      does: ["prepare"],
      is: "preparing",
    },
    "not when it is about to be tried again": {
      when: [...failing(9999), given({ retryAt: now })],
      does: ["prepare"],
      is: "preparing",
    },
    "not before it is known that it still fails": {
      when: [notReady(9999, "InstallationFailed"), set(), pod()],
      does: ["prepare"],
      is: "preparing",
    },
    "not where an Update waits for it": {
      when: [...failing(9999), update("waiting")],
      does: ["prepare"],
      is: "preparing",
    },
    "not where a file backend would be lost with what fails": {
      when: [...failing(9999), atRisk],
      does: ["prepare"],
      is: "preparing",
    },
    "sooner for what fails, when a pod elsewhere finds no node": {
      when: [...failing(20), given({ yielding: ["team/web"] })],
      does: ["sleep", "forget"],
      is: "unchanged",
    },
    "what fails stays without a pod until it is tried again": {
      when: [...putAway, given({ retryAt: now + 5000 })],
      does: ["forget"],
      is: "unchanged",
      looksAgainMs: 5000,
    },
    "also when an earlier process has put it away": { when: putAway, does: ["forget"], is: "unchanged" },
    "it is tried again in a pod of its own": {
      when: [...putAway, given({ retryAt: now })],
      does: ["applyObjects"],
      is: "waiting",
    },
    "a new spec wakes it": { when: [...putAway, changed], does: ["applyObjects"], is: "waiting" },
    "so does an Update": { when: [...putAway, update("waiting")], does: ["applyObjects"], is: "waiting" },
    "a failure of another kind, without a pod, is no sleep": {
      when: [notReady(60, "InitializationFailed"), set({ replicas: 0 })],
      does: ["applyObjects"],
      is: "waiting",
    },
    "does not come for a new spec": { when: [ready(9999), changed, set(), pod()], does: ["prepare"], is: "preparing" },
    "never comes where a file backend would be lost": {
      when: [ready(9999), set(), pod(), atRisk],
      does: ["prepare"],
      is: "preparing",
    },
    "comes sooner when a pod elsewhere finds no node": {
      when: [ready(20), set(), pod(), given({ yielding: ["team/web"] })],
      is: "asleep",
    },
    "not for a pod elsewhere, when another has been idle for longer": {
      when: [ready(20), set(), pod(), given({ yielding: ["team/other"] })],
      does: ["prepare"],
      is: "preparing",
    },
    "not so soon that its own Update could not have come": {
      when: [ready(2), set(), pod(), given({ yielding: ["team/web"] })],
      does: ["prepare"],
      is: "preparing",
    },
    "not for others where a file backend would be lost": {
      when: [ready(20), set(), pod(), atRisk, given({ yielding: ["team/web"] })],
      does: ["prepare"],
      is: "preparing",
    },
    "lasts: nothing is read or written": {
      when: [ready(5000), withoutAddress, set({ replicas: 0 })],
      does: ["forget"],
      is: "asleep",
    },
    "lasts while the old pod ends": {
      when: [ready(5000), withoutAddress, set({ replicas: 0 }), pod({ isDeleting: true })],
      does: ["forget"],
      is: "asleep",
    },
    "and the old pod does not end: its grace is cut short": {
      when: [ready(5000), withoutAddress, set({ replicas: 0 }), pod({ isDeleting: true, endingSince: ago(61) })],
      does: ["deletePod"],
      is: "asleep",
    },
    "without a StatefulSet is sleep too": { when: [ready(), withoutAddress], does: ["forget"], is: "asleep" },
    "ends when an Update waits": {
      when: [ready(5000), withoutAddress, set({ replicas: 0 }), update("waiting")],
      does: ["applyObjects"],
      is: "waiting",
    },
    "ends when the spec has changed": {
      when: [ready(5000), withoutAddress, changed, set({ replicas: 0 })],
      does: ["applyObjects"],
      is: "waiting",
    },
    "of a workspace that was never ready is not sleep": {
      when: [notReady(), set({ replicas: 0 })],
      does: ["applyObjects"],
      is: "waiting",
    },
  });
});

interface Conclusion {
  readonly when?: readonly Trait[];
  readonly after: Performed;
  readonly is: string;
  readonly says?: string;
  readonly reason?: string;
  readonly looksAgainMs?: number;
}

const done = (ok: boolean, failure: Partial<PrepareFailure> = {}): Preparation => ({
  state: "done",
  result: ok
    ? {
        ok: true,
        prepared: {
          revision: "r",
          stack: "dev",
          project: { name: "p", runtime: "yaml" },
          pulumiVersion: "3.260.0",
          changed: { source: true, dependencies: true, stack: true, config: true },
          timings: { source: 1, install: 1, stack: 1, config: 1 },
        },
      }
    : { ok: false, failure: { phase: "source", reason: "other", message: "no", lines: [], ...failure } },
});

describe("what comes of a preparation", () => {
  const up = [set(), pod()];
  const cases: Readonly<Record<string, Conclusion>> = {
    "it is under way": { after: { preparation: { state: "running" } }, is: "preparing", reason: "Initializing" },
    "it installs": {
      after: { preparation: { state: "running", phase: "install" } },
      is: "preparing",
      reason: "Installing",
    },
    "it configures": {
      after: { preparation: { state: "running", phase: "config" } },
      is: "preparing",
      reason: "Initializing",
    },
    "it is looked at once more, after a restart of ours: ready stays ready": {
      when: [ready()],
      after: { preparation: { state: "running" } },
      is: "unchanged",
    },
    "it is done anew for a new spec: not ready": {
      when: [ready(), changed],
      after: { preparation: { state: "running" } },
      is: "preparing",
    },
    "it is tried again: the failure stands until more is known": {
      when: [notReady(60, "InstallationFailed"), given({ retryAt: ago(1) })],
      after: { preparation: { state: "running" } },
      is: "unchanged",
    },
    "it is good": {
      after: { preparation: done(true) },
      is: "ready",
      says: '"address":"10.0.0.1:50051","pulumiVersion":"3.260.0"',
      reason: "Succeeded",
      looksAgainMs: 300_000,
    },
    "it is good, and sleep is near": {
      when: [ready(500)],
      after: { preparation: done(true) },
      is: "ready",
      looksAgainMs: 100_000,
    },
    "it is good, in a pod of the sixth version": {
      when: [pod({ agent: { workspace: { namespace: "team", name: "web" }, uid: "p", restarts: 0, ip: "fd00::1" } })],
      after: { preparation: done(true) },
      is: "ready",
      says: "[fd00::1]:50051",
    },
    "it is good, but its backend would be lost": {
      when: [atRisk],
      after: { preparation: done(true) },
      is: "ready",
      says: "/state, which no volume keeps",
    },
    "the program cannot be installed": {
      after: { preparation: done(false, { phase: "install", reason: "installFailed" }) },
      is: "failed",
      reason: "InstallationFailed",
    },
    "the stack is not there": {
      after: { preparation: done(false, { phase: "stack", reason: "stackNotFound" }) },
      is: "failed",
      reason: "InitializationFailed",
    },
    "the source does not answer": {
      after: { preparation: done(false, { reason: "sourceUnavailable" }) },
      is: "failed",
      reason: "InitializationFailed",
    },
    "the CLI is too old": {
      after: { preparation: done(false, { phase: "config", reason: "versionTooLow" }) },
      is: "failed",
      reason: "IncompatibleConfiguration",
    },
    "another request took its place": {
      after: { preparation: done(false, { reason: "superseded" }) },
      is: "preparing",
    },
    "the agent does not listen yet": {
      after: { preparation: { state: "unreachable", message: "refused", sinceMs: ago(2) } },
      is: "preparing",
    },
    "the agent does not answer": {
      after: { preparation: { state: "unreachable", message: "refused", sinceMs: ago(20) } },
      is: "unreachable",
      reason: "ConnectionFailed",
    },
    "a ready agent is lost for a moment": {
      when: [ready()],
      after: { preparation: { state: "unreachable", message: "refused", sinceMs: ago(2) } },
      is: "unchanged",
    },
    "a ready agent is lost": {
      when: [ready()],
      after: { preparation: { state: "unreachable", message: "refused", sinceMs: ago(20) } },
      is: "unreachable",
    },
    "an agent that is about to begin does not listen yet": {
      when: [podComing],
      after: { preparation: { state: "unreachable", message: "refused", sinceMs: ago(20) } },
      is: "waiting",
      says: "the pod is starting",
    },
    "an agent that is about to begin is being asked": {
      when: [podComing],
      after: { preparation: { state: "running" } },
      is: "waiting",
    },
    "an agent answers before the kubelet tells that it runs": {
      when: [podComing],
      after: { preparation: { state: "running", phase: "install" } },
      is: "preparing",
    },
    "it is good before the kubelet tells that it runs": {
      when: [podComing],
      after: { preparation: done(true) },
      is: "ready",
    },
    "a run is in its way": {
      after: { preparation: { state: "busy", message: "a run is active" } },
      is: "held",
      reason: "RollingUpdate",
    },
    "a run is in its way, of what is ready": {
      when: [ready()],
      after: { preparation: { state: "busy", message: "a run is active" } },
      is: "unchanged",
    },
    "the API server refuses the objects": { after: { refusal: "its words" }, is: "refused", says: "its words" },
    "nothing to conclude": { after: {}, is: "preparing" },
  };
  for (const [name, { when = [], after, is, says = "", reason, looksAgainMs }] of Object.entries(cases)) {
    test(name, () => {
      const seen = view(...up, ...when);
      const { outcome, lookAt } = conclude(seen, planWorkspace(seen), after);
      expect(outcome.kind).toBe(is as never);
      expect(JSON.stringify(outcome)).toContain(says);
      if (reason !== undefined) expect(statusOf(seen, outcome).conditions?.[0]?.reason).toBe(reason);
      if (looksAgainMs !== undefined) expect(lookAt).toBe(now + looksAgainMs);
    });
  }
});

describe("a failed preparation is tried again", () => {
  const prepareStep = (...traits: Trait[]): Step | undefined =>
    planWorkspace(view(set(), pod(), notReady(), ...traits)).steps.find(({ kind }) => kind === "prepare");

  test("when its time has come, and not before", () => {
    expect(prepareStep(given({ retryAt: now + 1 }))).toMatchObject({ again: false });
    expect(prepareStep(given({ retryAt: now }))).toMatchObject({ again: true });
    expect(prepareStep()).toMatchObject({ again: false });
  });

  test("soon where the network is to blame, and ever more rarely", () => {
    const failure = (reason: PrepareFailure["reason"]): PrepareFailure => ({
      phase: "source",
      reason,
      message: "",
      lines: [],
    });
    const pauses = (reason: PrepareFailure["reason"]): number[] =>
      [0, 1, 2, 50].map((attempts) => retryAfterMs(failure(reason), attempts) / 1000);
    expect(pauses("sourceUnavailable")).toEqual([10, 20, 40, 600]);
    expect(pauses("installFailed")).toEqual([60, 120, 240, 600]);
  });
});

test("a status from before this operator, with nothing known in it, is no obstacle", () => {
  const odd = status({ conditions: [], address: "host:50051" });
  expect(planWorkspace(view(odd, set(), pod())).steps.map(({ kind }) => kind)).toEqual(["prepare"]);
});
