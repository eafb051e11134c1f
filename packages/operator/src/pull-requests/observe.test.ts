import { expect, test } from "bun:test";
import { triggerAnnotation, type Stack, type Update, type UpdateStatus } from "@pko/api";
import type { Store } from "@pko/kube";

import { observePullRequests, runsOf, type PullRequestsWorld } from "./observe.ts";
import { aParent, aPreview, commits, now } from "./testing/views.ts";

const [commit] = commits;
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
const owner = { apiVersion: "pulumi.com/v1", kind: "Stack", name: "web-pr-1", uid: preview.metadata.uid ?? "" };

const updateWith = (status: UpdateStatus, ownerReferences = [owner]): Update => ({
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "Update",
  metadata: {
    name: "web-pr-1-a",
    ownerReferences,
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

const others: readonly (readonly [string, Update])[] = [
  ["without owners", updateWith({}, [])],
  ["of another Stack", updateWith({}, [{ ...owner, uid: "another" }])],
];
test.each(others)("an Update %s is no run of the preview whose Workspace it names", (_, update) => {
  expect(runsOf(storeOf(update), parent, [preview])).toEqual([]);
});

test("nobody reports the run of a preview that no longer exists, but its result may have been reported before", () => {
  const cancelled = aParent({}, { cancelledPreviews: [head] });
  expect(runsOf(storeOf(updateWith({})), cancelled, [])).toEqual([]);
  const ended = updateWith({ conditions: [complete], report: { state: "success" } }, []);
  expect(runsOf(storeOf(ended), cancelled, [])).toEqual([{ ...head, isReported: true }]);
});

test("the password in the URL of a repository that cannot be derived is not shown", async () => {
  const stack = aParent({
    projectRepo: "https://user:sec@ret@git.example.com/.git",
    pullRequests: { type: "Gitea", secretRef: { name: "forge" } },
  });
  const stacks: Pick<Store<Stack>, "get" | "byIndex"> = { get: () => stack, byIndex: () => [] };
  const part = { stacks, updates: storeOf(updateWith({})), suspension: { isOn: false } };
  const view = await observePullRequests(part as unknown as PullRequestsWorld, "default/web", {
    now,
    monotonic: 0,
    memory: undefined,
    signal: AbortSignal.timeout(30_000),
  });
  expect(view?.forge).toMatchObject({ kind: "failed", problem: "credentials" });
  expect(JSON.stringify(view?.forge)).toContain("The pull requests of https://git.example.com/.git cannot be read");
});

function storeOf(update: Update): Pick<Store<Update>, "byIndex"> {
  return { byIndex: () => [update] };
}
