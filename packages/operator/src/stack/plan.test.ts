import { describe, expect, test } from "bun:test";
import type { LastUpdate } from "@pko/api";

import { unavailable, type SourceView } from "../sources/source-view.ts";
import { concludeBlocked } from "./blocked.ts";
import { planStack } from "./plan.ts";
import { statusOf } from "./status.ts";
import {
  ago,
  anUpdate,
  aTrigger,
  failed,
  now,
  prerequisite,
  succeeded,
  told,
  viewOf,
  type Setting,
} from "./testing/views.ts";
import type { UpdateView } from "./view.ts";

type Case = readonly [sentence: string, setting: Setting, plan: string];

function cases(title: string, table: readonly Case[]): void {
  describe(title, () => {
    for (const [sentence, setting, plan] of table) test(sentence, () => expect(told(setting)).toBe(plan));
  });
}

const messageOf = (setting: Setting): string => {
  const view = viewOf(setting);
  return statusOf(view, planStack(view)).conditions?.[0]?.message ?? "";
};

const git = { projectRepo: "https://host/repo.git", branch: "main" };
const flux = {
  fluxSource: { sourceRef: { apiVersion: "source.toolkit.fluxcd.io/v1", kind: "GitRepository", name: "web" } },
};
const gitSource = (revision: string): SourceView => ({
  kind: "ready",
  revision,
  aliases: [],
  spec: { git: { url: "https://host/repo.git", ref: revision } },
});
const artifact = (revision: string, digest: string): SourceView => ({
  kind: "ready",
  revision,
  digest,
  aliases: [digest],
  spec: { flux: { url: "http://source/a.tar.gz", digest } },
});
const deployed = (commit: string, digest?: string): LastUpdate =>
  succeeded({ lastSuccessfulCommit: commit, lastAttemptedCommit: commit, ...(digest && { digest }) });
const program = (generation: number, aliases: readonly string[] = []): Extract<SourceView, { kind: "ready" }> => ({
  kind: "ready",
  revision: String(generation),
  aliases,
  spec: { program: { name: "program", generation } },
});

const stuck = anUpdate({ startedAt: now - 1000, stall: "Pod web-workspace-0 on node worker-2 has not responded." });

cases("a pod whose node may be lost", [
  ["an update that is stuck stalls its Stack", { updates: [stuck] }, "none: NodeLost"],
  ["also while the Stack is being deleted", { deleting: true, updates: [stuck] }, "none: NodeLost"],
  [
    "also when the resources are to be destroyed then",
    { deleting: true, spec: { destroyOnFinalize: true }, updates: [stuck] },
    "none: NodeLost",
  ],
  [
    "also while it is being cancelled",
    { cancelled: "web-now", updates: [{ ...stuck, deleting: true }] },
    "none: NodeLost",
  ],
  [
    "a Workspace that cannot have another pod stalls its Stack",
    { request: "now", workspace: { failed: "NodeLost" } },
    "none: NodeLost",
  ],
]);

cases("the first update", [
  [
    "a new Stack gets its finalizer before anything else",
    { finalizer: false, workspace: "absent" },
    "addFinalizer: keep",
  ],
  ["even one whose spec is invalid", { finalizer: false, spec: { stack: "" } }, "addFinalizer: keep"],
  ["then its Workspace", { workspace: "absent" }, "applyWorkspace: StackProcessing"],
  ["a Workspace of another program is changed", { workspace: "other" }, "applyWorkspace: StackProcessing"],
  ["a Workspace that is being prepared is waited for", { workspace: "preparing" }, "none: StackProcessing"],
  ["a Workspace that nobody has seen is waited for", { workspace: "unseen" }, "none: StackProcessing"],
  ["a Workspace that is going is waited for", { workspace: "deleting" }, "none: StackProcessing"],
  ["a Workspace of somebody else is left alone", { workspace: "foreign" }, "none: OwnershipConflict"],
  ["when it is ready the Update is created", {}, creating("up for first")],
  ["previews run where previews are asked for", { spec: { preview: true } }, creating("preview for first")],
  ["a status without an update is as good as none", { status: { observedGeneration: 1 } }, creating("up for first")],
]);

/** An Update that an operator before this one made, which keeps no trigger. */
function ofFormer(changes: Partial<UpdateView>): UpdateView {
  const { trigger: _, ...update } = anUpdate(changes);
  return update;
}

function without<Field extends keyof LastUpdate>(field: Field, last: LastUpdate): Omit<LastUpdate, Field> {
  const { [field]: _, ...rest } = last;
  return rest;
}

function creating(what: string): string {
  return `create ${what}: StackProcessing`;
}

cases("nothing to do", [
  ["what succeeded for all that is asked now is up to date", { last: succeeded() }, "none: Ready"],
  ["however long ago that was", { last: succeeded({ lastResyncTime: ago(10_000_000) }) }, "none: Ready"],
  ["also without a Workspace", { last: succeeded(), workspace: "absent" }, "none: Ready"],
  ["also with a Workspace of another program", { last: succeeded(), workspace: "other" }, "none: Ready"],
  [
    "also with a Workspace that failed",
    { last: succeeded(), workspace: { failed: "InstallationFailed" } },
    "none: Ready",
  ],
  ["also with a Workspace of somebody else", { last: succeeded(), workspace: "foreign" }, "none: Ready"],
  ["also though a Secret is missing", { last: succeeded(), missing: ["there is no Secret a"] }, "none: Ready"],
  [
    "also though a prerequisite failed since",
    { last: succeeded(), prerequisites: [prerequisite({ last: "failed" })] },
    "none: Ready",
  ],
  [
    "also though a prerequisite is too old",
    { last: succeeded(), prerequisites: [prerequisite({ withinMs: 1 })] },
    "none: Ready",
  ],
  [
    "a preview that succeeded is ready",
    { spec: { preview: true }, last: succeeded({ type: "preview" }) },
    "none: Ready",
  ],
  [
    "a commit that the reference deployed is not deployed again",
    {
      spec: git,
      source: gitSource("c0ffee"),
      last: succeeded({ lastSuccessfulCommit: "c0ffee", lastAttemptedCommit: "c0ffee", name: "web-18f3a" }),
    },
    "none: Ready",
  ],
  [
    "a Program that the reference knew by its digest is the same",
    { source: program(3, ["sha256:abc"]), last: succeeded({ lastSuccessfulCommit: "sha256:abc" }) },
    "none: Ready",
  ],
  [
    "an artifact that the reference knew by its revision is the same",
    { spec: flux, source: artifact("main@sha1:c", "sha256:a"), last: deployed("main@sha1:c") },
    "none: Ready",
  ],
  [
    "so is one that this operator once knew by its digest",
    { spec: flux, source: artifact("main@sha1:c", "sha256:a"), last: deployed("sha256:a") },
    "none: Ready",
  ],
  [
    "a new commit whose artifact has the same content",
    { spec: flux, source: artifact("main@sha1:d", "sha256:a"), last: deployed("main@sha1:c", "sha256:a") },
    "none: Ready",
  ],
  ["a status of the reference may have no type", { last: without("type", succeeded()) }, "none: Ready"],
  [
    "a folder in the image has no revision",
    {
      spec: { workspaceTemplate: { spec: { local: { dir: "/app" } } } },
      source: { kind: "ready", revision: "", aliases: [], spec: { local: { dir: "/app" } } },
      last: succeeded({ lastSuccessfulCommit: "", lastAttemptedCommit: "" }),
    },
    "none: Ready",
  ],
  ["a reconcile request that was taken back", { last: succeeded({ reconcileRequest: "a" }) }, "none: Ready"],
  [
    "a reconcile request that was answered",
    { request: "x", last: succeeded({ reconcileRequest: "x" }) },
    "none: Ready",
  ],
  [
    "a source nobody has looked at since the start is no reason to worry",
    { last: succeeded(), source: { kind: "pending", what: "a look" } },
    "none: keep",
  ],
]);

cases("when an update is due", [
  ["a changed spec", { last: succeeded(), generation: 2 }, creating("up for generation")],
  [
    "a changed spec after the reference's status of old, which has no generation",
    { last: without("generation", succeeded()) },
    creating("up for generation"),
  ],
  [
    "a new commit",
    { spec: git, source: gitSource("b"), last: succeeded({ lastSuccessfulCommit: "a" }) },
    creating("up for revision"),
  ],
  [
    "a former commit, by force",
    { spec: git, source: gitSource("a"), last: succeeded({ lastSuccessfulCommit: "b" }) },
    creating("up for revision"),
  ],
  ["a changed Program", { source: program(2), last: succeeded() }, creating("up for revision")],
  [
    "a tag that was moved to other content",
    { spec: flux, source: artifact("v1", "sha256:b"), last: deployed("v1", "sha256:a") },
    creating("up for revision"),
  ],
  [
    "an artifact of another revision than that which the reference deployed",
    { spec: flux, source: artifact("main@sha1:d", "sha256:b"), last: deployed("main@sha1:c") },
    creating("up for revision"),
  ],
  [
    "a Program whose alias is of another revision",
    { source: program(2, ["sha256:new"]), last: succeeded({ lastSuccessfulCommit: "sha256:old" }) },
    creating("up for revision"),
  ],
  ["a reconcile request", { request: "now", last: succeeded() }, creating("up for request")],
  [
    "another reconcile request",
    { request: "b", last: succeeded({ reconcileRequest: "a" }) },
    creating("up for request"),
  ],
  [
    "a new commit after a failure, at once",
    { spec: git, source: gitSource("b"), last: failed({ lastAttemptedCommit: "a" }) },
    creating("up for revision"),
  ],
  ["a changed spec after a failure, at once", { generation: 2, last: failed() }, creating("up for generation")],
  ["a request after a failure, at once", { request: "x", last: failed() }, creating("up for request")],
  [
    "a request after many failures, at once",
    { request: "x", last: failed({ failures: 9 }) },
    creating("up for request"),
  ],
  [
    "an output of another Stack that changed",
    { spec: withOutput(), stackOutputs: [output("v2")], last: succeeded({ inputs: "base.url@v1" }) },
    creating("up for inputs"),
  ],
  [
    "a changed value of a Secret that the configuration takes",
    {
      configInputs: [{ name: "secret/db.password", version: "b" }],
      last: succeeded({ inputs: "configMap/a.b@x secret/db.password@a" }),
    },
    creating("up for inputs"),
  ],
  [
    "not one that is as it was",
    {
      configInputs: [{ name: "secret/db.password", version: "a" }],
      last: succeeded({ inputs: "secret/db.password@a" }),
    },
    "none: Ready",
  ],
  [
    "not one that nobody noted the last time, as before a change of operators",
    { configInputs: [{ name: "secret/db.password", version: "a" }], last: succeeded() },
    "none: Ready",
  ],
  [
    "not one that is gone: what it deployed stays as it is",
    { last: succeeded({ inputs: "secret/db.password@a" }) },
    "none: Ready",
  ],
  [
    "not an output that stayed",
    { spec: withOutput(), stackOutputs: [output("v1")], last: succeeded({ inputs: "base.url@v1" }) },
    "none: Ready",
  ],
  [
    "with a new Program the Workspace is changed first",
    { source: program(2), origin: { program: { name: "program", generation: 1 } }, last: succeeded() },
    "applyWorkspace: StackProcessing",
  ],
]);

function withOutput(): NonNullable<Setting["spec"]> {
  return { envRefs: { URL: { type: "StackOutput", stack: "base", output: "url" } } };
}

function output(version?: string, from = prerequisite()) {
  return { stack: "base", output: "url", from, ...(version !== undefined && { version }) };
}

const resync = (seconds: number) => ({ continueResyncOnCommitMatch: true, resyncFrequencySeconds: seconds });

cases("the periodic resync", [
  [
    "runs when its time has come",
    { spec: resync(600), last: succeeded({ lastResyncTime: ago(601) }) },
    creating("up for resync"),
  ],
  ["to the second", { spec: resync(600), last: succeeded({ lastResyncTime: ago(600) }) }, creating("up for resync")],
  ["not before", { spec: resync(600), last: succeeded({ lastResyncTime: ago(599) }) }, "none: Ready"],
  [
    "not more often than every minute",
    { spec: resync(1), last: succeeded({ lastResyncTime: ago(59) }) },
    "none: Ready",
  ],
  [
    "every minute at most",
    { spec: resync(1), last: succeeded({ lastResyncTime: ago(60) }) },
    creating("up for resync"),
  ],
  [
    "every minute when not told otherwise",
    { spec: { continueResyncOnCommitMatch: true }, last: succeeded({ lastResyncTime: ago(61) }) },
    creating("up for resync"),
  ],
  [
    "not when it is not asked for",
    { spec: { resyncFrequencySeconds: 60 }, last: succeeded({ lastResyncTime: ago(61) }) },
    "none: Ready",
  ],
  [
    "in the past of a clock that was set back it does not run",
    { spec: resync(60), last: succeeded({ lastResyncTime: ago(-500) }) },
    "none: Ready",
  ],
  [
    "also previews",
    { spec: { ...resync(60), preview: true }, last: succeeded({ type: "preview", lastResyncTime: ago(61) }) },
    creating("preview for resync"),
  ],
]);

cases("after a failure", [
  ["it waits for ten seconds", { last: failed({ lastResyncTime: ago(9) }) }, "none: RetryingAfterFailure"],
  ["then tries again", { last: failed({ lastResyncTime: ago(10) }) }, creating("up for retry")],
  [
    "after the second failure it waits for thirty",
    { last: failed({ failures: 2, lastResyncTime: ago(29) }) },
    "none: RetryingAfterFailure",
  ],
  ["then tries again", { last: failed({ failures: 2, lastResyncTime: ago(30) }) }, creating("up for retry")],
  ["after the third it is stalled", { last: failed({ failures: 3, lastResyncTime: ago(89) }) }, "none: UpdateFailed"],
  ["and still tries again", { last: failed({ failures: 3, lastResyncTime: ago(90) }) }, creating("up for retry")],
  [
    "after many it waits for a day",
    { last: failed({ failures: 20, lastResyncTime: ago(86_399) }) },
    "none: UpdateFailed",
  ],
  ["and not longer", { last: failed({ failures: 200, lastResyncTime: ago(86_400) }) }, creating("up for retry")],
  [
    "or as long as the spec says",
    { spec: { retryMaxBackoffDurationSeconds: 60 }, last: failed({ failures: 9, lastResyncTime: ago(60) }) },
    creating("up for retry"),
  ],
  [
    "a preview that failed is told as such",
    { spec: { preview: true }, last: failed({ type: "preview" }) },
    "none: PreviewFailed",
  ],
  [
    "a preview that failed often is stalled",
    { spec: { preview: true }, last: failed({ type: "preview", failures: 3 }) },
    "none: UpdateFailed",
  ],
  ["a conflict stalls", { last: failed({ failure: "conflict" }) }, "none: UpdateConflict"],
  ["but is tried again", { last: failed({ failure: "conflict", lastResyncTime: ago(10) }) }, creating("up for retry")],
  [
    "a conflict is soon tried again where the spec says so",
    {
      spec: { retryOnUpdateConflict: true },
      last: failed({ failure: "conflict", failures: 8, lastResyncTime: ago(59) }),
    },
    "none: RetryingAfterFailure",
  ],
  [
    "after a minute at most",
    {
      spec: { retryOnUpdateConflict: true },
      last: failed({ failure: "conflict", failures: 8, lastResyncTime: ago(60) }),
    },
    creating("up for retry"),
  ],
  [
    "another failure is not, though the spec says so",
    { spec: { retryOnUpdateConflict: true }, last: failed({ failures: 8, lastResyncTime: ago(60) }) },
    "none: UpdateFailed",
  ],
  [
    "a failure of the reference, without a count",
    { last: without("failures", failed({ lastResyncTime: ago(10) })) },
    creating("up for retry"),
  ],
]);

cases("while an update runs", [
  ["nothing else happens", { updates: [anUpdate()] }, "none: StackProcessing"],
  ["not though the spec changed", { generation: 2, updates: [anUpdate()] }, "none: StackProcessing"],
  [
    "not though the spec became invalid",
    { spec: { stack: "" }, updates: [anUpdate({ startedAt: now })] },
    "none: StackProcessing",
  ],
  [
    "not though the source is gone",
    { source: unavailable("notFound", "gone"), updates: [anUpdate()] },
    "none: StackProcessing",
  ],
  ["not though there is a request", { request: "x", updates: [anUpdate()] }, "none: StackProcessing"],
  [
    "not though the last one failed long ago",
    { last: failed({ lastResyncTime: ago(9999) }), updates: [anUpdate()] },
    "none: StackProcessing",
  ],
  [
    "not though its Workspace is going",
    { workspace: "deleting", updates: [anUpdate({ startedAt: now })] },
    "none: StackProcessing",
  ],
  [
    "a destroy waits for it",
    { deleting: true, spec: { destroyOnFinalize: true }, updates: [anUpdate({ startedAt: now })] },
    "none: StackProcessing",
  ],
  [
    "the one before it is let go",
    {
      last: succeeded({ name: "web-before" }),
      updates: [anUpdate({ name: "web-before", state: "succeeded" }), anUpdate()],
    },
    "release, none: StackProcessing",
  ],
]);

const installing = { failed: "InstallationFailed" };

cases("an update that has not begun", [
  ["waits for its Workspace", { workspace: "preparing", updates: [anUpdate()] }, "none: StackProcessing"],
  ["and tells when that fails", { workspace: installing, updates: [anUpdate()] }, "none: WorkspaceFailed"],
  [
    "is withdrawn when its Workspace is gone",
    { workspace: "absent", updates: [anUpdate()] },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "is withdrawn when its Workspace is going",
    { workspace: "deleting", updates: [anUpdate()] },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "is withdrawn when its Workspace fails and there is a new revision",
    { workspace: installing, source: program(2), updates: [anUpdate()] },
    "withdrawUpdate: StackProcessing",
  ],
  ["or a new spec", { workspace: installing, generation: 2, updates: [anUpdate()] }, "withdrawUpdate: StackProcessing"],
  [
    "or a new request",
    { workspace: installing, request: "x", updates: [anUpdate()] },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "is withdrawn when its Workspace hangs and there is a new spec",
    { workspace: "preparing", generation: 2, updates: [anUpdate()] },
    "withdrawUpdate: StackProcessing",
  ],
  ["not when it is about to begin", { generation: 2, updates: [anUpdate()] }, "none: StackProcessing"],
  [
    "is withdrawn when the Stack is deleted",
    { deleting: true, spec: { destroyOnFinalize: true }, updates: [anUpdate()] },
    "withdrawUpdate: StackProcessing",
  ],
  ["is withdrawn once", { workspace: "absent", updates: [anUpdate({ deleting: true })] }, "none: StackProcessing"],
  [
    "a destroy waits for a Workspace that fails",
    {
      deleting: true,
      spec: { destroyOnFinalize: true },
      workspace: installing,
      updates: [anUpdate({ type: "destroy" })],
    },
    "none: WorkspaceFailed",
  ],
  [
    "a destroy is withdrawn when its Workspace hangs and there is a new spec",
    {
      deleting: true,
      generation: 2,
      spec: { destroyOnFinalize: true },
      workspace: "preparing",
      updates: [anUpdate({ type: "destroy", trigger: aTrigger({ type: "destroy" }) })],
    },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "a destroy without a Workspace is withdrawn",
    {
      deleting: true,
      spec: { destroyOnFinalize: true },
      workspace: "absent",
      updates: [anUpdate({ type: "destroy" })],
    },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "one that has begun is never withdrawn",
    { workspace: "absent", updates: [anUpdate({ startedAt: now })] },
    "none: StackProcessing",
  ],
]);

test("an update that has not begun is withdrawn in the version that was seen, one that is cancelled in any", () => {
  const waiting = anUpdate({ resourceVersion: "12" });
  const { name, uid } = waiting;
  const inVain = planStack(viewOf({ workspace: "absent", updates: [waiting] }));
  expect(inVain.step).toEqual({ kind: "withdrawUpdate", name, uid, resourceVersion: "12" });
  const cancelled = planStack(viewOf({ cancelled: name, updates: [waiting] }));
  expect(cancelled.step).toEqual({ kind: "withdrawUpdate", name, uid });
});

const destroyed = { deleting: true, spec: { destroyOnFinalize: true } };

cases("an update that is to be cancelled", [
  ["is withdrawn", { cancelled: "web-now", updates: [anUpdate()] }, "withdrawUpdate: StackProcessing"],
  [
    "though it has begun",
    { cancelled: "web-now", updates: [anUpdate({ startedAt: now })] },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "but only once",
    { cancelled: "web-now", updates: [anUpdate({ startedAt: now, deleting: true })] },
    "none: StackProcessing",
  ],
  ["not when another was meant", { cancelled: "web-last", updates: [anUpdate()] }, "none: StackProcessing"],
  [
    "a person is told of its end",
    { cancelled: "web-now", updates: [anUpdate({ state: "failed", endedAt: now })] },
    "note: UpdateFailed",
  ],
  [
    "its success is a success",
    { cancelled: "web-now", updates: [anUpdate({ state: "succeeded", endedAt: now })] },
    "note: Ready",
  ],
  [
    "it is not tried again",
    { cancelled: "web-last", last: failed({ lastResyncTime: ago(9999) }) },
    "none: UpdateFailed",
  ],
  [
    "unless the request to cancel it is taken back",
    { last: failed({ lastResyncTime: ago(9999) }) },
    creating("up for retry"),
  ],
  ["or something is requested", { cancelled: "web-last", last: failed(), request: "x" }, creating("up for request")],
  ["or the spec changes", { cancelled: "web-last", last: failed(), generation: 2 }, creating("up for generation")],
  ["or the source", { cancelled: "web-last", last: failed(), source: program(2) }, creating("up for revision")],
  [
    "or the next resync comes",
    {
      cancelled: "web-last",
      spec: { continueResyncOnCommitMatch: true, resyncFrequencySeconds: 60 },
      last: failed({ lastResyncTime: ago(60) }),
    },
    creating("up for resync"),
  ],
  [
    "a destroy is not tried again, either",
    { ...destroyed, cancelled: "web-last", last: failed({ type: "destroy", lastResyncTime: ago(9999) }) },
    "none: UpdateFailed",
  ],
  [
    "unless it is requested",
    { ...destroyed, cancelled: "web-last", request: "x", last: failed({ type: "destroy" }) },
    creating("destroy for destroy"),
  ],
]);

cases("when an update has ended", [
  ["its success is noted", { updates: [anUpdate({ state: "succeeded", endedAt: now })] }, "note: Ready"],
  [
    "its failure is noted",
    { updates: [anUpdate({ state: "failed", endedAt: now, message: "no" })] },
    "note: RetryingAfterFailure",
  ],
  [
    "the third failure is noted",
    { last: failed({ failures: 2 }), updates: [anUpdate({ state: "failed", endedAt: now })] },
    "note: UpdateFailed",
  ],
  [
    "a failure after another trigger counts anew",
    {
      last: failed({ failures: 2, lastAttemptedCommit: "other" }),
      updates: [anUpdate({ state: "failed", endedAt: now })],
    },
    "note: RetryingAfterFailure",
  ],
  [
    "a conflict is noted",
    { updates: [anUpdate({ state: "failed", failure: "conflict", endedAt: now })] },
    "note: UpdateConflict",
  ],
  [
    "a conflict that is retried is noted",
    {
      spec: { retryOnUpdateConflict: true },
      updates: [anUpdate({ state: "failed", failure: "conflict", endedAt: now })],
    },
    "note: RetryingAfterFailure",
  ],
  [
    "a preview's failure is noted",
    {
      spec: { preview: true },
      updates: [anUpdate({ state: "failed", type: "preview", trigger: aTrigger({ type: "preview" }), endedAt: now })],
    },
    "note: PreviewFailed",
  ],
  [
    "a success for a former spec is noted, and is not the end",
    { generation: 2, updates: [anUpdate({ state: "succeeded", endedAt: now })] },
    "note: StackProcessing",
  ],
  [
    "also when the spec became invalid",
    { spec: { stack: "" }, updates: [anUpdate({ state: "failed", endedAt: now })] },
    "note: RetryingAfterFailure",
  ],
  [
    "also when the source is gone",
    { source: unavailable("auth", "no"), updates: [anUpdate({ state: "succeeded", endedAt: now })] },
    "note: Ready",
  ],
  [
    "also while the Stack is being deleted",
    { deleting: true, spec: { destroyOnFinalize: true }, updates: [anUpdate({ state: "succeeded", endedAt: now })] },
    "note: StackProcessing",
  ],
  [
    "a failed destroy is noted",
    {
      deleting: true,
      spec: { destroyOnFinalize: true },
      last: succeeded(),
      updates: [anUpdate({ state: "failed", type: "destroy", trigger: aTrigger({ type: "destroy" }), endedAt: now })],
    },
    "note: RetryingAfterFailure",
  ],
  [
    "of two the older is noted first",
    {
      updates: [
        anUpdate({ name: "a", state: "failed", endedAt: now }),
        anUpdate({ name: "b", state: "succeeded", endedAt: now }),
      ],
      last: succeeded(),
    },
    "note: RetryingAfterFailure",
  ],
  [
    "what is noted is let go",
    { last: succeeded({ name: "web-now" }), updates: [anUpdate({ state: "succeeded", endedAt: now })] },
    "release, none: Ready",
  ],
  [
    "what an operator before this one has noted is let go, and changes nothing",
    {
      last: succeeded(),
      updates: [ofFormer({ name: "web-18beef", state: "failed", endedAt: now - 7_200_000 })],
    },
    "release, none: Ready",
  ],
  [
    "what it had not noted, though its end was seen, is noted",
    {
      last: succeeded(),
      status: { currentUpdate: { name: "web-18beef", generation: 1, commit: "1" } },
      updates: [ofFormer({ name: "web-18beef", state: "failed", endedAt: now })],
    },
    "note: RetryingAfterFailure",
  ],
  [
    "what was let go is history",
    { last: succeeded(), updates: [anUpdate({ state: "failed", held: false, endedAt: now })] },
    "none: Ready",
  ],
  [
    "and tells a Stack whose status was lost how it stood",
    { updates: [anUpdate({ state: "succeeded", held: false, endedAt: now })] },
    "note: Ready",
  ],
]);

const pending = succeeded({ outputsPending: true });
const readOutputs = { kind: "read", values: [], former: { data: {}, versions: {} } } as const;
const theirSecret = { kind: "Secret", namespace: "default", name: "web-1-stack-outputs" };

cases("outputs that are not where others look for them", [
  ["are written when nothing else is to be done", { last: pending, outputs: readOutputs }, "writeOutputs: Ready"],
  [
    "after the Workspace is deleted",
    { spec: { workspaceReclaimPolicy: "Delete" }, last: pending, outputs: readOutputs },
    "deleteWorkspace: keep",
  ],
  [
    "not before an update that is due",
    { last: pending, outputs: readOutputs, generation: 2 },
    creating("up for generation"),
  ],
  ["are told by another run where the Update has expired", { last: pending }, "none: OutputsLost"],
  [
    "and where the Secret of somebody else that had its Secret's name is removed",
    { last: pending, outputs: { kind: "lost", message: "Secret s does not exist." } },
    "none: OutputsLost",
  ],
  [
    "so they are where somebody else has the Update's Secret",
    { last: pending, outputs: { kind: "lost", message: "taken", occupant: theirSecret } },
    "none: OwnershipConflict",
  ],
  [
    "the end of an update is recorded also then",
    {
      updates: [anUpdate({ name: "web-1", state: "succeeded", held: true })],
      outputs: { kind: "lost", message: "taken", occupant: theirSecret },
    },
    "note: OwnershipConflict",
  ],
  [
    "and without a word where its Secret is merely deleted",
    {
      updates: [anUpdate({ name: "web-1", state: "succeeded", held: true })],
      outputs: { kind: "lost", message: "deleted" },
    },
    "note: Ready",
  ],
]);

test("outputs that are lost: the message says why and how to get them", () => {
  const request = "set the annotation pulumi.com/reconciliation-request of the Stack to another value.";
  const without = `The next update writes them; to request one now, ${request}`;
  expect(messageOf({ last: pending })).toBe(
    `The outputs of web-last were not kept, though it succeeded. Update web-last has expired. ${without}`,
  );
  expect(messageOf({ last: pending, outputs: { kind: "lost", message: "Secret s does not exist." } })).toBe(
    `The outputs of web-last were not kept, though it succeeded. Secret s does not exist. ${without}`,
  );
  expect(
    messageOf({ last: pending, outputs: { kind: "lost", message: "Secret s exists.", occupant: theirSecret } }),
  ).toBe(
    "The outputs of web-last were not kept, though it succeeded. Secret s exists. Delete or rename it; then, to request an " +
      `update that writes the outputs, ${request}`,
  );
});

test("a Secret that is in the way of an Update's outputs is read again", () => {
  const outputs = { kind: "lost", message: "Secret s exists.", occupant: theirSecret } as const;
  expect(planStack(viewOf({ last: pending, outputs })).lookAt).toBe(now + 15_000);
});

test("outputs that were written are no longer pending", () => {
  const view = viewOf({ last: pending, outputs: readOutputs });
  expect(statusOf(view, planStack(view)).lastUpdate).toEqual(succeeded());
});

test("the end of an update is recorded, and its outputs are pending, where somebody else has the Secret for them", () => {
  const view = viewOf({
    updates: [anUpdate({ name: "web-1", state: "succeeded", held: true })],
    outputs: readOutputs,
  });
  const occupant = { kind: "Secret", namespace: "default", name: "web-outputs" };
  const shown = concludeBlocked(view, planStack(view).step, { kind: "foreign", occupant });
  const status = statusOf(view, shown);
  expect(status.lastUpdate).toMatchObject({ name: "web-1", state: "succeeded", outputsPending: true });
  expect(status.conditions?.[0]?.message).toBe(
    "The update web-1 succeeded, but its outputs were not written. Secret default/web-outputs (without an owner) already " +
      "exists and was not created for Stack web, so nothing was changed. Delete or rename it, or use another name for the " +
      "Stack; this is checked again automatically.",
  );
  expect(shown.lookAt).toBe(view.now + 15_000);
  const former = concludeBlocked(view, planStack(view).step, { kind: "former", occupant });
  expect(statusOf(view, former).conditions?.[1]?.reason).toBe("StackProcessing");
});

cases("what can be wrong with the spec", [
  ["no stack's name", { spec: { stack: "" } }, "none: SpecInvalid"],
  ["two revisions", { spec: { ...git, commit: "a".repeat(40) } }, "none: SpecInvalid"],
  [
    "a Secret of another namespace",
    { spec: { envRefs: { A: { type: "Secret", secret: { name: "a", key: "b", namespace: "other" } } } } },
    "none: SpecInvalid",
  ],
  ["a reference to the operator's environment", { spec: { envRefs: { A: { type: "Env" } } } }, "none: SpecInvalid"],
  ["a reference to the operator's files", { spec: { envRefs: { A: { type: "FS" } } } }, "none: SpecInvalid"],
  ["itself as a prerequisite", { spec: { prerequisites: [{ name: "web" }] } }, "none: SpecInvalid"],
  ["it is so also after a success", { spec: { stack: "" }, last: succeeded() }, "none: SpecInvalid"],
  ["Stacks that wait for each other", { cycle: ["web", "base", "web"] }, "none: SpecInvalid"],
  ["also after a success", { cycle: ["web", "base", "web"], last: succeeded() }, "none: SpecInvalid"],
  ["a Secret that is not there, when an update is due", { missing: ["there is no Secret token"] }, "none: SpecInvalid"],
  [
    "a Secret that is not there, for a destroy",
    { deleting: true, spec: { destroyOnFinalize: true }, last: succeeded(), missing: ["there is no Secret token"] },
    "none: SpecInvalid",
  ],
]);

cases("the source", [
  ["not there", { source: unavailable("notFound", "there is no Program program") }, "none: SourceUnavailable"],
  ["refuses the credentials", { source: unavailable("auth", "no") }, "none: SourceUnavailable"],
  ["has no such branch", { source: unavailable("branchMissing", "no") }, "none: SourceUnavailable"],
  ["cannot be reached", { source: unavailable("unreachable", "no") }, "none: SourceUnavailable"],
  ["is refused", { source: unavailable("refused", "no") }, "none: SourceUnavailable"],
  ["of Flux is not ready", { source: unavailable("notReady", "no") }, "none: SourceUnavailable"],
  ["is gone after a success", { source: unavailable("notFound", "no"), last: succeeded() }, "none: SourceUnavailable"],
  ["is gone after a failure", { source: unavailable("notFound", "no"), last: failed() }, "none: SourceUnavailable"],
  ["is not known yet, of a new Stack", { source: { kind: "pending", what: "a look" } }, "none: StackProcessing"],
  [
    "is not known yet, of a changed Stack",
    {
      source: { kind: "pending", what: "a look" },
      last: succeeded(),
      status: { observedGeneration: 1 },
      generation: 2,
    },
    "none: StackProcessing",
  ],
]);

cases("the Workspace", [
  ["failed to install", { workspace: { failed: "InstallationFailed" } }, "none: WorkspaceFailed"],
  ["failed to select the stack", { workspace: { failed: "InitializationFailed" } }, "none: WorkspaceFailed"],
  ["has a CLI that is too old", { workspace: { failed: "IncompatibleConfiguration" } }, "none: PulumiVersionTooLow"],
  [
    "failed, and there is something new to try",
    {
      workspace: { failed: "InstallationFailed" },
      source: program(2),
      origin: { program: { name: "program", generation: 1 } },
    },
    "applyWorkspace: StackProcessing",
  ],
  [
    "is deleted after a success where the spec says so",
    { spec: { workspaceReclaimPolicy: "Delete" }, last: succeeded() },
    "deleteWorkspace: Ready",
  ],
  [
    "is gone already",
    { spec: { workspaceReclaimPolicy: "Delete" }, last: succeeded(), workspace: "absent" },
    "none: Ready",
  ],
  [
    "of somebody else is not deleted",
    { spec: { workspaceReclaimPolicy: "Delete" }, last: succeeded(), workspace: "foreign" },
    "none: Ready",
  ],
  [
    "is kept after a failure",
    { spec: { workspaceReclaimPolicy: "Delete" }, last: failed() },
    "none: RetryingAfterFailure",
  ],
  ["is kept where the spec says so", { spec: { workspaceReclaimPolicy: "Retain" }, last: succeeded() }, "none: Ready"],
]);

const waits = { name: "base" };

cases("prerequisites", [
  [
    "one that succeeded will do",
    { spec: { prerequisites: [waits] }, prerequisites: [prerequisite()] },
    creating("up for first"),
  ],
  ["in time", { prerequisites: [prerequisite({ withinMs: 600_000 })] }, creating("up for first")],
  [
    "one that is not there is waited for",
    { prerequisites: [prerequisite({ state: "absent", last: "none" })] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "one that has not run yet is waited for",
    { prerequisites: [prerequisite({ last: "none" })] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "one that failed is waited for",
    { prerequisites: [prerequisite({ last: "failed" })] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "one that is being deleted is waited for",
    { prerequisites: [prerequisite({ state: "deleting" })] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "one that is too old is asked to run again",
    { prerequisites: [prerequisite({ withinMs: 599_000 })] },
    "askPrerequisites: PrerequisiteNotSatisfied",
  ],
  [
    "but once only",
    { prerequisites: [prerequisite({ withinMs: 1, reconcileRequest: `after-${ago(600)}` })] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "one of several is enough to wait",
    { prerequisites: [prerequisite(), prerequisite({ name: "other", last: "none" })] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "a Secret that is missing is told first",
    { missing: ["there is no Secret a"], prerequisites: [prerequisite({ last: "none" })] },
    "none: SpecInvalid",
  ],
  [
    "they do not matter to a destroy",
    {
      deleting: true,
      spec: { destroyOnFinalize: true },
      last: succeeded(),
      prerequisites: [prerequisite({ last: "none" })],
    },
    creating("destroy for destroy"),
  ],
  [
    "one that has changed since it succeeded is waited for",
    { prerequisites: [prerequisite({ isCurrent: false })] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "and so are its outputs",
    { spec: withOutput(), stackOutputs: [output("v1", prerequisite({ isCurrent: false }))] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "one that was only previewed is waited for",
    { prerequisites: [prerequisite({ last: "previewed" })] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "but not by another preview",
    { spec: { preview: true }, prerequisites: [prerequisite({ last: "previewed" })] },
    creating("preview for first"),
  ],
  [
    "an output is waited for",
    { spec: withOutput(), stackOutputs: [output(undefined, prerequisite({ last: "none" }))] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "an output of a Stack that is not there is waited for",
    { spec: withOutput(), stackOutputs: [output(undefined, prerequisite({ state: "absent", last: "none" }))] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "a Stack that was deployed when nobody kept its outputs is asked to run again",
    { spec: withOutput(), stackOutputs: [output()] },
    "askPrerequisites: PrerequisiteNotSatisfied",
  ],
  [
    "but once only, however often it has run since",
    { spec: withOutput(), stackOutputs: [output(undefined, prerequisite({ reconcileRequest: "outputs-are-needed" }))] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "a Stack whose outputs are others is not asked: it would not help",
    { spec: withOutput(), stackOutputs: [{ ...output(), others: ["uri"] }] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "nor is one that previews",
    {
      spec: { ...withOutput(), preview: true },
      stackOutputs: [output(undefined, prerequisite({ last: "previewed" }))],
    },
    "none: PrerequisiteNotSatisfied",
  ],
  ["an output that is there will do", { spec: withOutput(), stackOutputs: [output("v1")] }, creating("up for first")],
  [
    "an output of a Stack that failed since is not used",
    { spec: withOutput(), stackOutputs: [output("v1", prerequisite({ last: "failed" }))] },
    "none: PrerequisiteNotSatisfied",
  ],
]);

const dying = { deleting: true, spec: { destroyOnFinalize: true } } as const;
const info = { projectInfo: { name: "project", runtime: "yaml" } };
const gone = unavailable("notFound", "there is no Program program");

cases("deletion without a destroy", [
  ["the finalizer goes at once", { deleting: true, last: succeeded() }, "removeFinalizer: keep"],
  [
    "an update that waits to begin is withdrawn first",
    { deleting: true, updates: [anUpdate()] },
    "withdrawUpdate: StackProcessing",
  ],
  ["and its end is waited for", { deleting: true, updates: [anUpdate({ deleting: true })] }, "none: StackProcessing"],
  [
    "a destroy that waits to begin is withdrawn when destroyOnFinalize is switched off",
    { deleting: true, updates: [anUpdate({ type: "destroy" })] },
    "withdrawUpdate: StackProcessing",
  ],
  ["not while one runs", { deleting: true, updates: [anUpdate({ startedAt: now })] }, "none: StackProcessing"],
  [
    "unless somebody wants it cancelled",
    { deleting: true, cancelled: "web-now", updates: [anUpdate({ startedAt: now })] },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "a Stack that previews destroys nothing, whatever ran before: the Pulumi stack may be another's",
    { deleting: true, spec: { destroyOnFinalize: true, preview: true }, last: succeeded(), status: { deployed: true } },
    "removeFinalizer: keep",
  ],
  ["also of an invalid spec", { deleting: true, spec: { stack: "" }, last: succeeded() }, "removeFinalizer: keep"],
  ["also after failures", { deleting: true, last: failed({ failures: 9 }) }, "removeFinalizer: keep"],
  ["also without a source", { deleting: true, source: gone }, "removeFinalizer: keep"],
  [
    "a Stack without our finalizer is not ours any more",
    { deleting: true, finalizer: false, last: succeeded() },
    "none: keep",
  ],
  ["nor does it get one", { ...dying, finalizer: false }, "none: keep"],
]);

cases("deletion with a destroy", [
  ["of what never ran there is nothing to destroy", { ...dying, workspace: "absent" }, "removeFinalizer: keep"],
  [
    "not even of an invalid spec",
    { deleting: true, spec: { stack: "", destroyOnFinalize: true } },
    "removeFinalizer: keep",
  ],
  ["the destroy runs", { ...dying, last: succeeded() }, creating("destroy for destroy")],
  ["though the last update failed", { ...dying, last: failed() }, creating("destroy for destroy")],
  ["though the last update failed often", { ...dying, last: failed({ failures: 9 }) }, creating("destroy for destroy")],
  [
    "not where only previews ran: the Pulumi stack may be another's",
    { ...dying, last: succeeded({ type: "preview" }), status: { deployed: false } },
    "removeFinalizer: keep",
  ],
  [
    "also where the last run was a preview, and updates ran before",
    { ...dying, last: succeeded({ type: "preview" }), status: { deployed: true } },
    creating("destroy for destroy"),
  ],
  [
    "also where another operator has kept no note of what ran before",
    { ...dying, last: succeeded({ type: "preview" }) },
    creating("destroy for destroy"),
  ],
  [
    "also where the first update was noted nowhere but in its object",
    {
      ...dying,
      last: succeeded({ type: "preview" }),
      status: { deployed: false },
      updates: [anUpdate({ startedAt: now })],
    },
    "none: StackProcessing",
  ],
  ["in a Workspace", { ...dying, last: succeeded(), workspace: "absent" }, "applyWorkspace: StackProcessing"],
  ["that is ready", { ...dying, last: succeeded(), workspace: "preparing" }, "none: StackProcessing"],
  [
    "with the source, if it is there",
    { ...dying, last: succeeded(), status: info, workspace: "other" },
    "applyWorkspace: StackProcessing",
  ],
  [
    "once it is known",
    { ...dying, last: succeeded(), source: { kind: "pending", what: "a look" } },
    "none: StackProcessing",
  ],
  [
    "without the source, if it is gone",
    { ...dying, last: succeeded(), status: info, source: gone, workspace: "absent" },
    "applyWorkspace: StackProcessing",
  ],
  [
    "in the Workspace made for that",
    { ...dying, last: succeeded(), status: info, source: gone, origin: info },
    creating("destroy for destroy"),
  ],
  [
    "also when the source is back meanwhile",
    { ...dying, last: succeeded(), status: info, origin: info },
    creating("destroy for destroy"),
  ],
  [
    "not without the source where nothing is remembered",
    { ...dying, last: succeeded(), source: gone },
    "none: SourceUnavailable",
  ],
  [
    "nor where the program has to run",
    {
      deleting: true,
      spec: { destroyOnFinalize: true, runProgram: true },
      last: succeeded(),
      status: info,
      source: gone,
    },
    "none: SourceUnavailable",
  ],
  [
    "without a source that cannot be prepared",
    { ...dying, last: succeeded(), status: info, workspace: { failed: "InstallationFailed" } },
    "applyWorkspace: StackProcessing",
  ],
  [
    "an invalid spec has to be mended first",
    { deleting: true, spec: { stack: "", destroyOnFinalize: true }, last: succeeded() },
    "none: SpecInvalid",
  ],
  [
    "Stacks that wait for each other can still go",
    { ...dying, last: succeeded(), cycle: ["web", "base", "web"] },
    creating("destroy for destroy"),
  ],
  [
    "a failed destroy keeps the finalizer",
    { ...dying, last: failed({ type: "destroy" }) },
    "none: RetryingAfterFailure",
  ],
  [
    "and is tried again",
    { ...dying, last: failed({ type: "destroy", lastResyncTime: ago(10) }) },
    creating("destroy for retry"),
  ],
  [
    "at once when the spec changes",
    { ...dying, generation: 2, last: failed({ type: "destroy" }) },
    creating("destroy for destroy"),
  ],
  [
    "at once when there is a request",
    { ...dying, request: "x", last: failed({ type: "destroy" }) },
    creating("destroy for destroy"),
  ],
  [
    "after three failures it is stalled",
    { ...dying, last: failed({ type: "destroy", failures: 3 }) },
    "none: UpdateFailed",
  ],
  [
    "and still tried again",
    { ...dying, last: failed({ type: "destroy", failures: 3, lastResyncTime: ago(90) }) },
    creating("destroy for retry"),
  ],
  [
    "when it has succeeded the finalizer goes",
    { ...dying, last: succeeded({ type: "destroy" }) },
    "removeFinalizer: keep",
  ],
  [
    "and its Update is let go before",
    {
      ...dying,
      last: succeeded({ type: "destroy", name: "web-now" }),
      updates: [anUpdate({ type: "destroy", state: "succeeded" })],
    },
    "release, removeFinalizer: keep",
  ],
  [
    "a success that is not noted is noted first",
    {
      ...dying,
      last: succeeded(),
      updates: [anUpdate({ type: "destroy", state: "succeeded", trigger: aTrigger({ type: "destroy" }) })],
    },
    "note: StackProcessing",
  ],
  [
    "an update that ran, but is nowhere noted, is remembered by its object",
    { ...dying, updates: [anUpdate({ startedAt: now })] },
    "none: StackProcessing",
  ],
  ["or by the status", { ...dying, status: { currentUpdate: { name: "web-x" } } }, creating("destroy for destroy")],
  [
    "whoever no longer wants the destroy says so",
    { deleting: true, spec: {}, last: failed({ type: "destroy" }) },
    "removeFinalizer: keep",
  ],
]);

describe("what people read", () => {
  const table: readonly (readonly [string, Setting, RegExp])[] = [
    ["which fields are wrong", { spec: { stack: "" } }, /^spec\.stack: is not a valid name of a Pulumi stack/],
    ["who waits for whom", { cycle: ["web", "base", "web"] }, /web → base → web/],
    [
      "the program's own words, and what is next",
      { last: failed() },
      /^The up web-last failed: error: no such bucket\nIt is tried again at 2030-01-01T12:00:05Z\.$/,
    ],
    ["how often it failed", { last: failed({ failures: 3 }) }, /for the 3rd time in a row/],
    ["what a Workspace waits for", { workspace: "preparing" }, /is being prepared for the first update: installing\./],
    ["why it failed", { workspace: { failed: "InstallationFailed" } }, /cannot be prepared: npm: 404/],
    [
      "what a stuck update waits for",
      { updates: [anUpdate({ startedAt: now - 1000, stall: "Pod web-workspace-0 has not responded." })] },
      /^The up web-now is stuck\. Pod web-workspace-0 has not responded\.$/,
    ],
    [
      "what its deletion waits for",
      {
        deleting: true,
        updates: [anUpdate({ startedAt: now - 1000, stall: "Pod web-workspace-0 has not responded." })],
      },
      /^The up web-now is stuck; the Stack goes when it has ended.* Pod web-workspace-0 has not responded\.$/,
    ],
    [
      "that a Workspace's pod is on a lost node",
      { workspace: { failed: "NodeLost" } },
      /^Workspace web cannot be prepared: /,
    ],
    [
      "since when an update runs",
      { updates: [anUpdate({ startedAt: now - 1000 })] },
      /has been running since 2030-01-01T11:59:59Z/,
    ],
    [
      "that the destroy comes later",
      { ...dying, updates: [anUpdate({ startedAt: now })] },
      /the resources are destroyed when it has ended/,
    ],
    [
      "which Stack is waited for",
      { prerequisites: [prerequisite({ last: "none" })] },
      /Stack base has not succeeded yet/,
    ],
    [
      "that it was asked to run",
      { prerequisites: [prerequisite({ withinMs: 1 })] },
      /last succeeded at 2030-01-01T11:50:00Z, which is too long ago; it is asked to run again/,
    ],
    [
      "which output is missing, and which are there",
      { spec: withOutput(), stackOutputs: [{ ...output(), others: ["uri", "zone"] }] },
      /Stack base has no output url: it has uri, zone/,
    ],
    [
      "that a Stack was only previewed",
      { prerequisites: [prerequisite({ last: "previewed" })] },
      /Stack base was previewed only, and has to be deployed/,
    ],
    [
      "that the Stack goes when its update has ended",
      { deleting: true, updates: [anUpdate({ startedAt: now })] },
      /the Stack goes when it has ended, and its resources stay/,
    ],
    [
      "when a missing Secret is looked for again",
      { missing: ["there is no Secret a"] },
      /there is no Secret a; this is looked at again every 15 seconds/,
    ],
    [
      "that another update runs",
      { last: failed({ failure: "conflict" }) },
      /because another update of the Pulumi stack is running/,
    ],
    ["what changed", { last: succeeded({ summary: "2 created" }) }, /^The last update succeeded: 2 created\.$/],
    [
      "what a Workspace warns of though all is well",
      { last: succeeded(), workspace: { warning: "its state is kept by nobody" } },
      /^The last update succeeded\. But its state is kept by nobody\.$/,
    ],
    [
      "what keeps a source from being followed",
      { last: succeeded(), source: { ...program(1), warning: "Bucket b is not ready" } },
      /^The last update succeeded\. But Bucket b is not ready\.$/,
    ],
  ];
  for (const [what, setting, words] of table) test(what, () => expect(messageOf(setting)).toMatch(words));

  test("since when the same is waited for", () => {
    const setting = { workspace: "preparing" as const };
    const first = viewOf(setting);
    const status = statusOf(first, planStack(first));
    expect(status.waiting).toEqual({ for: "Workspace web", since: ago(0) });
    const later = { ...viewOf({ ...setting, status }), now: now + 60_000 };
    expect(statusOf(later, planStack(later))).toEqual(status);
  });

  test("when the next resync is", () => {
    const view = viewOf({ spec: resync(600), last: succeeded({ lastResyncTime: ago(100) }) });
    const plan = planStack(view);
    expect(statusOf(view, plan).next).toEqual({ what: "the periodic resync", time: ago(-500) });
    expect(plan.lookAt).toBe(now + 500_000);
  });

  test("a source that is not to be had is looked at again: the remedy may be in a Secret, which nobody watches", () => {
    expect(planStack(viewOf({ source: unavailable("auth", "no") })).lookAt).toBe(now + 15_000);
  });

  test("a message without end is cut, and no character halved", () => {
    const message = "😀".repeat(20_000);
    const view = viewOf({ last: failed({ message }) });
    const shown = statusOf(view, planStack(view)).conditions?.[0]?.message ?? "";
    expect(shown.length).toBeLessThanOrEqual(8192);
    expect(shown.isWellFormed()).toBe(true);
  });
});
