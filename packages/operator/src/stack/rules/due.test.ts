import { expect, test } from "bun:test";
import type { LastUpdate } from "@pko/api";

import type { SourceView } from "../../sources/source-view.ts";
import {
  ago,
  cases,
  creating,
  failed,
  git,
  now,
  prerequisite,
  program,
  resync,
  stackOutput,
  succeeded,
  viewOf,
  withOutput,
} from "../testing/views.ts";
import { driftDue } from "./drift/due.ts";
import { nextDue } from "./due.ts";

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
function without<Field extends keyof LastUpdate>(field: Field, last: LastUpdate): Omit<LastUpdate, Field> {
  const { [field]: _, ...rest } = last;
  return rest;
}

cases("a Stack is up to date when", [
  ["the last update succeeded for the current trigger", { last: succeeded() }, "none: Ready"],
  ["the last update succeeded long ago", { last: succeeded({ lastResyncTime: ago(10_000_000) }) }, "none: Ready"],
  ["there is no Workspace", { last: succeeded(), workspace: "absent" }, "none: Ready"],
  ["the Workspace has another program", { last: succeeded(), workspace: "other" }, "none: Ready"],
  ["the Workspace failed", { last: succeeded(), workspace: { failed: "InstallationFailed" } }, "none: Ready"],
  ["the Workspace has another owner", { last: succeeded(), workspace: "foreign" }, "none: Ready"],
  ["a Secret is missing", { last: succeeded(), missing: ["there is no Secret a"] }, "none: Ready"],
  [
    "a prerequisite has failed since",
    { last: succeeded(), prerequisites: [prerequisite({ last: "failed" })] },
    "none: Ready",
  ],
  ["a prerequisite is too old", { last: succeeded(), prerequisites: [prerequisite({ withinMs: 1 })] }, "none: Ready"],
  ["the last preview succeeded", { spec: { preview: true }, last: succeeded({ type: "preview" }) }, "none: Ready"],
  [
    "the Go operator deployed the commit",
    {
      spec: git,
      source: gitSource("c0ffee"),
      last: succeeded({ lastSuccessfulCommit: "c0ffee", lastAttemptedCommit: "c0ffee", name: "web-18f3a" }),
    },
    "none: Ready",
  ],
  [
    "the Go operator recorded the digest of the Program",
    { source: program(3, ["sha256:abc"]), last: succeeded({ lastSuccessfulCommit: "sha256:abc" }) },
    "none: Ready",
  ],
  [
    "the Go operator recorded the revision of the artifact",
    { spec: flux, source: artifact("main@sha1:c", "sha256:a"), last: deployed("main@sha1:c") },
    "none: Ready",
  ],
  [
    "an earlier version of this operator recorded the digest of the artifact",
    { spec: flux, source: artifact("main@sha1:c", "sha256:a"), last: deployed("sha256:a") },
    "none: Ready",
  ],
  [
    "a new commit has the same content",
    { spec: flux, source: artifact("main@sha1:d", "sha256:a"), last: deployed("main@sha1:c", "sha256:a") },
    "none: Ready",
  ],
  ["the Go operator recorded no type", { last: without("type", succeeded()) }, "none: Ready"],
  [
    "a directory in the image has no revision",
    {
      spec: { workspaceTemplate: { spec: { local: { dir: "/app" } } } },
      source: { kind: "ready", revision: "", aliases: [], spec: { local: { dir: "/app" } } },
      last: succeeded({ lastSuccessfulCommit: "", lastAttemptedCommit: "" }),
    },
    "none: Ready",
  ],
  ["the reconcile request was removed", { last: succeeded({ reconcileRequest: "a" }) }, "none: Ready"],
  [
    "the last update was for the reconcile request",
    { request: "x", last: succeeded({ reconcileRequest: "x" }) },
    "none: Ready",
  ],
  [
    "the source has not been read after a restart: the status stays",
    { last: succeeded(), source: { kind: "pending", what: "the first check" } },
    "none: unchanged",
  ],
]);

cases("an update is due if", [
  ["the spec changed", { last: succeeded(), generation: 2 }, creating("up for generation")],
  [
    "the Go operator recorded no generation",
    { last: without("generation", succeeded()) },
    creating("up for generation"),
  ],
  [
    "there is a new commit",
    { spec: git, source: gitSource("b"), last: succeeded({ lastSuccessfulCommit: "a" }) },
    creating("up for revision"),
  ],
  [
    "the branch was forced back to an earlier commit",
    { spec: git, source: gitSource("a"), last: succeeded({ lastSuccessfulCommit: "b" }) },
    creating("up for revision"),
  ],
  ["the Program changed", { source: program(2), last: succeeded() }, creating("up for revision")],
  [
    "a tag was moved to other content",
    { spec: flux, source: artifact("v1", "sha256:b"), last: deployed("v1", "sha256:a") },
    creating("up for revision"),
  ],
  [
    "the artifact has another revision than the Go operator recorded",
    { spec: flux, source: artifact("main@sha1:d", "sha256:b"), last: deployed("main@sha1:c") },
    creating("up for revision"),
  ],
  [
    "the Program has another digest than the Go operator recorded",
    { source: program(2, ["sha256:new"]), last: succeeded({ lastSuccessfulCommit: "sha256:old" }) },
    creating("up for revision"),
  ],
  ["a reconcile was requested", { request: "now", last: succeeded() }, creating("up for request")],
  [
    "another reconcile was requested",
    { request: "b", last: succeeded({ reconcileRequest: "a" }) },
    creating("up for request"),
  ],
  [
    "there is a new commit after a failure, without a delay",
    { spec: git, source: gitSource("b"), last: failed({ lastAttemptedCommit: "a" }) },
    creating("up for revision"),
  ],
  [
    "the spec changed after a failure, without a delay",
    { generation: 2, last: failed() },
    creating("up for generation"),
  ],
  [
    "a reconcile was requested after a failure, without a delay",
    { request: "x", last: failed() },
    creating("up for request"),
  ],
  [
    "a reconcile was requested after many failures, without a delay",
    { request: "x", last: failed({ failures: 9 }) },
    creating("up for request"),
  ],
  [
    "an output of another Stack changed",
    { spec: withOutput(), stackOutputs: [stackOutput("v2")], last: succeeded({ inputs: "base.url@v1" }) },
    creating("up for inputs"),
  ],
  [
    "a value of a Secret changed that the configuration uses",
    {
      configInputs: [{ name: "secret/db.password", version: "b" }],
      last: succeeded({ inputs: "configMap/a.b@x secret/db.password@a" }),
    },
    creating("up for inputs"),
  ],
  [
    "not if that value is the same",
    {
      configInputs: [{ name: "secret/db.password", version: "a" }],
      last: succeeded({ inputs: "secret/db.password@a" }),
    },
    "none: Ready",
  ],
  [
    "not if the last update did not record that value, as after a migration",
    { configInputs: [{ name: "secret/db.password", version: "a" }], last: succeeded() },
    "none: Ready",
  ],
  [
    "not if that value no longer exists: the deployed resources stay",
    { last: succeeded({ inputs: "secret/db.password@a" }) },
    "none: Ready",
  ],
  [
    "not if the output is the same",
    { spec: withOutput(), stackOutputs: [stackOutput("v1")], last: succeeded({ inputs: "base.url@v1" }) },
    "none: Ready",
  ],
  [
    "changes the Workspace first if the Program changed",
    { source: program(2), origin: { program: { name: "program", generation: 1 } }, last: succeeded() },
    "applyWorkspace: StackProcessing",
  ],
]);

cases("the periodic resync", [
  [
    "runs after resyncFrequencySeconds",
    { spec: resync(600), last: succeeded({ lastResyncTime: ago(601) }) },
    creating("up for resync"),
  ],
  [
    "runs on the second",
    { spec: resync(600), last: succeeded({ lastResyncTime: ago(600) }) },
    creating("up for resync"),
  ],
  ["does not run before", { spec: resync(600), last: succeeded({ lastResyncTime: ago(599) }) }, "none: Ready"],
  ["runs at most every minute", { spec: resync(1), last: succeeded({ lastResyncTime: ago(59) }) }, "none: Ready"],
  [
    "runs every minute if the frequency is higher",
    { spec: resync(1), last: succeeded({ lastResyncTime: ago(60) }) },
    creating("up for resync"),
  ],
  [
    "runs every minute by default",
    { spec: { continueResyncOnCommitMatch: true }, last: succeeded({ lastResyncTime: ago(61) }) },
    creating("up for resync"),
  ],
  [
    "does not run without continueResyncOnCommitMatch",
    { spec: { resyncFrequencySeconds: 60 }, last: succeeded({ lastResyncTime: ago(61) }) },
    "none: Ready",
  ],
  [
    "does not run if the last update ended in the future, after the clock was set back",
    { spec: resync(60), last: succeeded({ lastResyncTime: ago(-500) }) },
    "none: Ready",
  ],
  [
    "runs previews",
    { spec: { ...resync(60), preview: true }, last: succeeded({ type: "preview", lastResyncTime: ago(61) }) },
    creating("preview for resync"),
  ],
]);

cases("after a failure, a Stack", [
  ["waits 10 seconds", { last: failed({ lastResyncTime: ago(9) }) }, "none: RetryingAfterFailure"],
  ["retries after 10 seconds", { last: failed({ lastResyncTime: ago(10) }) }, creating("up for retry")],
  [
    "waits 30 seconds after the second failure",
    { last: failed({ failures: 2, lastResyncTime: ago(29) }) },
    "none: RetryingAfterFailure",
  ],
  ["retries after 30 seconds", { last: failed({ failures: 2, lastResyncTime: ago(30) }) }, creating("up for retry")],
  [
    "is stalled after the third failure",
    { last: failed({ failures: 3, lastResyncTime: ago(89) }) },
    "none: UpdateFailed",
  ],
  ["retries also when stalled", { last: failed({ failures: 3, lastResyncTime: ago(90) }) }, creating("up for retry")],
  [
    "waits a day after many failures",
    { last: failed({ failures: 20, lastResyncTime: ago(86_399) }) },
    "none: UpdateFailed",
  ],
  [
    "waits no longer than a day",
    { last: failed({ failures: 200, lastResyncTime: ago(86_400) }) },
    creating("up for retry"),
  ],
  [
    "waits no longer than retryMaxBackoffDurationSeconds",
    { spec: { retryMaxBackoffDurationSeconds: 60 }, last: failed({ failures: 9, lastResyncTime: ago(60) }) },
    creating("up for retry"),
  ],
  [
    "reports a failed preview as PreviewFailed",
    { spec: { preview: true }, last: failed({ type: "preview" }) },
    "none: PreviewFailed",
  ],
  [
    "is stalled after the third failed preview",
    { spec: { preview: true }, last: failed({ type: "preview", failures: 3 }) },
    "none: UpdateFailed",
  ],
  ["is stalled by a conflict", { last: failed({ failure: "conflict" }) }, "none: UpdateConflict"],
  [
    "retries after a conflict",
    { last: failed({ failure: "conflict", lastResyncTime: ago(10) }) },
    creating("up for retry"),
  ],
  [
    "is not stalled by a conflict with retryOnUpdateConflict",
    {
      spec: { retryOnUpdateConflict: true },
      last: failed({ failure: "conflict", failures: 8, lastResyncTime: ago(59) }),
    },
    "none: RetryingAfterFailure",
  ],
  [
    "waits at most a minute after a conflict with retryOnUpdateConflict",
    {
      spec: { retryOnUpdateConflict: true },
      last: failed({ failure: "conflict", failures: 8, lastResyncTime: ago(60) }),
    },
    creating("up for retry"),
  ],
  [
    "waits longer after other failures with retryOnUpdateConflict",
    { spec: { retryOnUpdateConflict: true }, last: failed({ failures: 8, lastResyncTime: ago(60) }) },
    "none: UpdateFailed",
  ],
  [
    "retries a failure that was recorded by a clock which was hours ahead",
    { last: failed({ failures: 2, lastResyncTime: ago(-36_000) }) },
    creating("up for retry"),
  ],
  [
    "waits if another clock is a few seconds ahead",
    { last: failed({ lastResyncTime: ago(-20) }) },
    "none: RetryingAfterFailure",
  ],
  [
    "resyncs if the last update was recorded by a clock which was hours ahead",
    { spec: resync(600), last: succeeded({ lastResyncTime: ago(-36_000) }) },
    creating("up for resync"),
  ],
  [
    "retries a failure of the Go operator, which recorded no count",
    { last: without("failures", failed({ lastResyncTime: ago(10) })) },
    creating("up for retry"),
  ],
]);

test("resyncs and drift checks of Stacks with one interval are spread over 10 % before and after it", () => {
  const setting = { spec: { ...resync(600), driftDetection: { intervalSeconds: 300 } }, last: succeeded() };
  const view = viewOf({ ...setting, last: succeeded({ lastResyncTime: ago(0) }) });
  const nextIn = (uid: string): number[] => {
    const stack = { ...view.stack, metadata: { ...view.stack.metadata, uid } };
    return [nextDue({ ...view, stack }), driftDue({ ...view, stack })].map((due) =>
      due && "at" in due ? (due.at - now) / 1000 : 0,
    );
  };
  expect(nextIn("uid-of-web-3833")).toEqual([600, 300]);
  const all = Array.from({ length: 100 }, (_, index) => nextIn(`uid-${index}`));
  for (const [resyncIn = 0, checkIn = 0] of all) {
    expect(Math.abs(resyncIn - 600)).toBeLessThanOrEqual(60);
    expect(Math.abs(checkIn - 300)).toBeLessThanOrEqual(30);
  }
  expect(new Set(all.map(([resyncIn]) => resyncIn)).size).toBeGreaterThan(50);
});

test("drift checks do not wait for a time that was recorded by a clock which was hours ahead", () => {
  const spec = { driftDetection: { intervalSeconds: 300 } };
  const ahead = ago(-36_000);
  expect(driftDue(viewOf({ spec, last: succeeded({ lastResyncTime: ahead }) })).kind).toBe("now");
  const drift = { checkedAt: ahead, resources: [] };
  expect(driftDue(viewOf({ spec, drift, last: succeeded({ lastResyncTime: ago(60) }) })).kind).toBe("now");
});

test("Stacks that failed together are not retried together", () => {
  const view = viewOf({ last: failed({ failures: 20, lastResyncTime: ago(0) }) });
  const retryIn = (uid: string): number => {
    const due = nextDue({ ...view, stack: { ...view.stack, metadata: { ...view.stack.metadata, uid } } });
    return due && "at" in due ? (due.at - now) / 1000 : 0;
  };
  expect(retryIn("uid-of-web-3833")).toBe(86_400);
  const all = Array.from({ length: 100 }, (_, index) => retryIn(`uid-${index}`));
  for (const seconds of all) expect(Math.abs(seconds - 86_400)).toBeLessThanOrEqual(8640);
  expect(new Set(all).size).toBeGreaterThan(50);
});
