import { expect, test } from "bun:test";
import { triggerAnnotation, type Stack, type Update, type UpdateStatus } from "@pko/api";
import type { Store } from "@pko/kube";

import { ownersOf } from "../report/testing/views.ts";
import { observePullRequests, runsOf, type PullRequestsWorld } from "./observe.ts";
import { aParent, aPreview, commits, now } from "./testing/views.ts";

const [commit] = commits;
const moment = { now, monotonic: 0, memory: undefined, signal: AbortSignal.timeout(30_000) };
const head = { number: 1, commit };
const complete = {
  type: "Complete",
  status: "True",
  reason: "R",
  message: "",
  lastTransitionTime: "2030-01-01T00:00:00Z",
} as const;

const parent = aParent();
const preview = aPreview(parent, head);
const owners = ownersOf("web-pr-1", preview.metadata.uid ?? "");
const [workspace, owner] = owners;

const updateWith = (status: UpdateStatus, ownerReferences: Update["metadata"]["ownerReferences"] = owners): Update => ({
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "Update",
  metadata: {
    name: "web-pr-1-a",
    ownerReferences: ownerReferences ?? [],
    annotations: { [triggerAnnotation]: JSON.stringify({ type: "preview", revision: commit }) },
  },
  spec: { type: "preview", workspaceName: "web-pr-1" },
  status,
});

const statuses: readonly (readonly [string, UpdateStatus, boolean])[] = [
  ["has not ended", {}, false],
  ["has ended, and the forge shows it", { conditions: [complete], report: { state: "success" } }, true],
  ["has ended, and the forge shows that it runs", { conditions: [complete], report: { state: "running" } }, false],
  ["has ended, and the report is due", { conditions: [complete], report: { due: true } }, false],
  ["has ended, and nothing about it is reported", { conditions: [complete] }, false],
];
test.each(statuses)("whether the run of a preview is reported, if it %s", (_, status, isReported) => {
  expect(runsOf(storeOf(updateWith(status)), parent, [preview])).toEqual([{ ...head, isReported }]);
});

const reported: UpdateStatus = { conditions: [complete], report: { state: "success" } };
const others: readonly (readonly [string, Update["metadata"]["ownerReferences"]])[] = [
  ["without owners", []],
  ["of another Stack", [workspace, { ...owner, name: "api", uid: "another" }]],
  ["of another Stack, without a controller,", [{ ...owner, name: "api", uid: "another" }]],
  ["of another controller", [{ ...workspace, kind: "Job" }, owner]],
];
test.each(others)("an Update %s is no run of the preview whose Workspace it names", (_, references) => {
  const cancelled = aParent({}, { cancelledPreviews: [head] });
  for (const status of [{}, reported]) {
    expect(runsOf(storeOf(updateWith(status, references)), parent, [preview])).toEqual([]);
    expect(runsOf(storeOf(updateWith(status, references)), cancelled, [])).toEqual([]);
  }
});

test("a run whose Workspace was deleted is that of the preview: the garbage collector has removed its controller", () => {
  expect(runsOf(storeOf(updateWith({}, [owner])), parent, [preview])).toEqual([{ ...head, isReported: false }]);
});

test("nobody reports the run of a preview that no longer exists, but its result may have been reported before", () => {
  const cancelled = aParent({}, { cancelledPreviews: [head] });
  expect(runsOf(storeOf(updateWith({})), cancelled, [])).toEqual([]);
  // The garbage collector removes the reference to the preview while the Workspace still exists.
  for (const references of [owners, [workspace]]) {
    expect(runsOf(storeOf(updateWith(reported, references)), cancelled, [])).toEqual([{ ...head, isReported: true }]);
  }
});

test("a copy of a preview is none, and does not hide the preview", async () => {
  const copy: Stack = { ...preview, metadata: { ...preview.metadata, name: "copy", uid: "uid-of-the-copy" } };
  const suspended = aParent({ suspend: true });
  const stacks: Pick<Store<Stack>, "get" | "byIndex"> = { get: () => suspended, byIndex: () => [preview, copy] };
  const part = { stacks, updates: storeOf(updateWith({})), suspension: { isOn: false } };
  const view = await observePullRequests(part as unknown as PullRequestsWorld, "default/web", moment);
  expect(view?.previews).toEqual([preview]);
  expect(view?.runs).toEqual([{ ...head, isReported: false }]);
});

test("the password in the URL of a repository that cannot be derived is not shown", async () => {
  const stack = aParent({
    projectRepo: "https://user:sec@ret@git.example.com/.git",
    pullRequests: { type: "Gitea", secretRef: { name: "forge" } },
  });
  const stacks: Pick<Store<Stack>, "get" | "byIndex"> = { get: () => stack, byIndex: () => [] };
  const part = { stacks, updates: storeOf(updateWith({})), suspension: { isOn: false } };
  const view = await observePullRequests(part as unknown as PullRequestsWorld, "default/web", moment);
  expect(view?.forge).toMatchObject({ kind: "failed", problem: "credentials" });
  expect(JSON.stringify(view?.forge)).toContain("The pull requests of https://git.example.com/.git cannot be read");
});

test("a password in the path of a repository is not shown", async () => {
  const forgeOf = (stack: Stack) => {
    const stacks: Pick<Store<Stack>, "get" | "byIndex"> = { get: () => stack, byIndex: () => [] };
    const client = { find: () => Promise.resolve(undefined) };
    const part = { stacks, updates: storeOf(updateWith({})), suspension: { isOn: false }, client };
    return observePullRequests(part as unknown as PullRequestsWorld, "default/web", moment);
  };
  const view = await forgeOf(aParent({ projectRepo: "https://git.example.com/user:secret@a" }));
  expect(view?.forge).toMatchObject({ kind: "failed", problem: "credentials" });
  expect(JSON.stringify(view?.forge)).not.toContain("secret@");
});

function storeOf(update: Update): Pick<Store<Update>, "byIndex"> {
  return { byIndex: () => [update] };
}
