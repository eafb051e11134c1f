import { describe, expect, test } from "bun:test";
import {
  pullRequestAnnotation,
  triggerAnnotation,
  type Stack,
  type StackStatus,
  type Update,
  type UpdateStatus,
  type WorkspaceClassSpec,
} from "@pko/api";
import { keyOf, type Change, type Key, type KubeObject, type Store } from "@pko/kube";

import { ForgeLimits } from "../forge/forge-limits.ts";
import { workspaceKeyOf } from "../shared/updates.ts";
import type { ClassView } from "../shared/workspace-classes.ts";
import { forgeLine, observeReport, stacksConcernedBy } from "./observe.ts";
import {
  commit,
  ended,
  failed,
  now,
  ownersOf,
  running,
  settings,
  stack,
  succeeded,
  updateOf,
  withdrawn,
} from "./testing/views.ts";
import type { Delivered, ReportView, Subject } from "./view.ts";

const reporting: Stack = { ...stack, spec: { ...stack.spec, report: settings } };
const other = "f".repeat(40);

interface Scene {
  readonly stack?: Stack;
  /** Instead of `stack`. */
  readonly stacks?: readonly Stack[];
  readonly siblings?: readonly Update[];
  readonly update?: Update;
  readonly applied?: ClassView;
  readonly isSuspended?: boolean;
  readonly unrecorded?: ReadonlyMap<Key, Delivered>;
  readonly limits?: ForgeLimits;
  readonly moment?: Partial<Parameters<typeof observeReport>[2]>;
}

function storeOf<T extends KubeObject>(objects: readonly T[], indexOf: (object: T) => Key): Store<T> {
  const part: Pick<Store<T>, "get" | "byIndex"> = {
    get: (key) => objects.find((object) => keyOf(object) === key),
    byIndex: (_, value) => objects.filter((object) => indexOf(object) === value),
  };
  return part as Store<T>;
}

const subjectOf = (scene: Scene): Subject | undefined => observed(scene)?.subject;

function observed(scene: Scene): ReportView | undefined {
  const { update = updateOf(), siblings = [], applied = { kind: "none" }, isSuspended = false } = scene;
  const world = {
    updates: storeOf([update, ...siblings], workspaceKeyOf),
    stacks: storeOf(
      scene.stacks ?? [scene.stack ?? reporting],
      ({ metadata }) => metadata.ownerReferences?.[0]?.uid ?? "",
    ),
    classes: () => applied,
    suspension: { isOn: isSuspended },
    limits: scene.limits ?? new ForgeLimits(() => undefined),
    unrecorded: scene.unrecorded ?? new Map<Key, Delivered>(),
  };
  return observeReport(world, keyOf(update), { now, monotonic: 0, memory: undefined, ...scene.moment });
}

const annotated = (revision: string): Update["metadata"] => ({
  ...updateOf().metadata,
  annotations: { [triggerAnnotation]: JSON.stringify({ type: "up", revision }) },
});

/** Another Update of the Stack. */
const sibling = (revision: string, created: string, status = {}): Update =>
  updateOf(status, { metadata: { ...annotated(revision), uid: "other", name: "web-2", creationTimestamp: created } });

test("a Stack with settings is reported: the repository is that of its program", () => {
  expect(subjectOf({})).toMatchObject({
    commit,
    target: { type: "GitHub", url: "https://api.github.com", repository: "acme/web" },
    isSuperseded: false,
    isSuspended: false,
  });
});

const unreported: readonly (readonly [string, Scene])[] = [
  ["a Stack without settings", { stack }],
  ["a Stack that was created again", { stack: { ...reporting, metadata: { ...stack.metadata, uid: "new" } } }],
  ["an Update of a user", { update: updateOf({}, { metadata: { ...annotated(""), annotations: {} } }) }],
  ["a revision that is no commit", { update: updateOf({}, { metadata: annotated("sha-1") }) }],
  ["a drift check", { update: updateOf({}, { spec: { type: "refresh", previewOnly: true } }) }],
  ["a destroy", { update: updateOf({}, { spec: { type: "destroy" } }) }],
  [
    "a damaged trigger",
    { update: updateOf({}, { metadata: { ...annotated(""), annotations: { [triggerAnnotation]: "{" } } }) },
  ],
];
test.each(unreported)("is not reported: %s", (_, scene) => {
  expect(subjectOf(scene)).toBeUndefined();
});

test("the settings of the WorkspaceClass apply to Stacks without their own", () => {
  const report = { type: "GitLab", secretRef: { name: "class" } } as const;
  const spec: WorkspaceClassSpec = { namespaceSelector: {}, report };
  const applied: ClassView = { kind: "one", name: "c", uid: "c", spec };
  expect(subjectOf({ stack, applied })?.settings).toEqual(report);
  expect(subjectOf({ applied })?.settings).toEqual(settings);
});

test("the commit of a Flux source is part of its revision", () => {
  const flux = { ...reporting, spec: { stack: "s", report: { ...settings, repository: "a/b" } } };
  const update = updateOf({}, { metadata: annotated(`main@sha1:${commit}`) });
  expect(subjectOf({ stack: flux, update })).toMatchObject({ commit, target: { repository: "a/b" } });
});

const orders: readonly (readonly [string, Update, Partial<Update>, boolean])[] = [
  ["an earlier one", sibling(commit, "2029-12-31T23:59:59Z"), {}, false],
  ["a later one", sibling(commit, "2030-01-01T00:00:01Z"), {}, true],
  ["a later one of another commit", sibling(other, "2030-01-01T00:00:01Z"), {}, false],
  [
    "one of the same second, if this one has ended",
    sibling(commit, "2030-01-01T00:00:00Z", running),
    { status: succeeded },
    true,
  ],
  ["one of the same second that has ended", sibling(commit, "2030-01-01T00:00:00Z", succeeded), {}, false],
  ["a later one that runs", sibling(commit, "2030-01-01T00:00:01Z", running), { status: succeeded }, true],
  [
    "a later one that waits, but not if this one has a result",
    sibling(commit, "2030-01-01T00:00:01Z"),
    { status: succeeded },
    false,
  ],
  [
    "a later one that was withdrawn, but not if this one has a result",
    sibling(commit, "2030-01-01T00:00:01Z", withdrawn),
    { status: succeeded },
    false,
  ],
  [
    "a later one that was withdrawn, if this one was, too",
    sibling(commit, "2030-01-01T00:00:01Z", withdrawn),
    { status: withdrawn },
    true,
  ],
];
test.each(orders)("an Update is superseded by %s", (...row) => {
  const [, before, changes, expected] = row;
  expect(subjectOf({ update: updateOf({}, changes), siblings: [before] })?.isSuperseded).toBe(expected);
});

test.each([
  ["waits", {}, true],
  ["was withdrawn", withdrawn, true],
  ["runs", running, false],
])("an Update says nothing about a commit with a result if it %s", (_, status, expected) => {
  const siblings = [sibling(commit, "2029-12-31T23:59:59Z", succeeded)];
  expect(subjectOf({ update: updateOf(status), siblings })?.isVoid).toBe(expected);
});

const [workspaceOwner, stackOwner] = ownersOf("web", "stack-uid");
const controlledBy = (kind: string, name: string) => ({ ...workspaceOwner, kind, name, uid: "another" });
const foreignOwners: readonly (readonly [string, Update["metadata"]["ownerReferences"]])[] = [
  ["no owner", []],
  ["the Stack that was created again as an owner, and no controller", [{ ...stackOwner, uid: "another" }]],
  ["the Stack as an owner, and another controller", [controlledBy("Job", "web"), stackOwner]],
  ["the Stack as an owner, and another Workspace as the controller", [controlledBy("Workspace", "api"), stackOwner]],
  ["the Workspace as the controller, and not the Stack", [workspaceOwner]],
  ["the Workspace as the controller, and another Stack", [workspaceOwner, { ...stackOwner, uid: "another" }]],
];
test.each(foreignOwners)("an Update of somebody else supersedes nothing, and is not reported: %s", (_, owners) => {
  const later = sibling(commit, "2030-01-01T00:00:01Z", { report: { commentID: "9" } });
  const foreign = { ...later, metadata: { ...later.metadata, ownerReferences: owners ?? [] } };
  expect(subjectOf({ siblings: [foreign] })).toMatchObject({ isSuperseded: false });
  expect(subjectOf({ siblings: [foreign] })).not.toContainKey("commentID");
  expect(subjectOf({ update: foreign })).toBeUndefined();
});

/** The garbage collector has removed the reference to the Workspace. */
const left = { metadata: { ...updateOf().metadata, ownerReferences: [stackOwner] } };

test("an Update is reported after its Workspace was deleted", () => {
  expect(subjectOf({ update: updateOf(succeeded, left) })).toBeDefined();
});

test("an Update of somebody else is not reported: the Stack as an owner, no controller, and another Workspace", () => {
  expect(subjectOf({ update: updateOf({}, { ...left, spec: { type: "up", workspaceName: "api" } }) })).toBeUndefined();
});

test("the Go operator made the Stack the controller of its Updates", () => {
  const ownerReferences = [{ ...stackOwner, controller: true }];
  expect(subjectOf({ update: updateOf({}, { metadata: { ...updateOf().metadata, ownerReferences } }) })).toBeDefined();
});

const preview = { spec: { type: "preview", workspaceName: "web" } } as const;
const comments: readonly (readonly [string, Update, boolean])[] = [
  ["a later preview of another commit", { ...sibling(other, "2030-01-01T00:00:01Z"), ...preview }, true],
  ["a later preview of the same commit", { ...sibling(commit, "2030-01-01T00:00:01Z", running), ...preview }, true],
  ["an earlier preview", { ...sibling(other, "2029-12-31T23:59:59Z"), ...preview }, false],
  ["a later update", sibling(other, "2030-01-01T00:00:01Z"), false],
  ["a later preview of no commit", { ...sibling("", "2030-01-01T00:00:01Z"), ...preview }, false],
  [
    "a later preview of the same commit that never ran",
    { ...sibling(commit, "2030-01-01T00:00:01Z", withdrawn), ...preview },
    false,
  ],
];
test.each(comments)("the comment of a preview is outdated by %s", (_, later, expected) => {
  expect(subjectOf({ update: updateOf(succeeded, preview), siblings: [later] })?.isCommentOutdated).toBe(expected);
});

test.each([
  ["runs", { currentUpdate: { name: "web-1" } }, true],
  ["was the last one", { lastUpdate: { name: "web-1" } }, true],
  ["made the plan of the approval", { lastUpdate: { name: "web-0" }, approval: { updateName: "web-1" } }, true],
  ["is none of these", { lastUpdate: { name: "web-0" }, approval: { updateName: "web-0" } }, false],
])("the Stack names an Update that %s", (_, status, expected) => {
  expect(subjectOf({ stack: { ...reporting, status: status as StackStatus } })?.isNamed).toBe(expected);
});

test("what was delivered is known by the key of the Update, which is what remains of a deleted one", () => {
  const unrecorded = new Map([[keyOf(updateOf()), { digest: "d" }]]);
  expect(observed({ unrecorded })?.unrecorded).toEqual({ digest: "d" });
});

describe("a plan", () => {
  const plan = { digest: "d", secretNames: [], changes: true, destructive: false, unknownInputs: 0, summary: "" };
  const planned = { spec: { type: "preview", savePlan: true, workspaceName: "web" } } as const;
  const request = (state: string, updateUid = "update-uid") => ({ state, updateUid, updateName: "web-1" });
  const applying = (status: UpdateStatus, uid = "update-uid"): Update => ({
    ...sibling(other, "2030-01-01T00:00:01Z", status),
    spec: { type: "up", workspaceName: "web", applyPlan: { updateName: "web-1", updateUid: uid, digest: "d" } },
  });
  const drift = { type: "refresh", previewOnly: true, workspaceName: "web" } as const;
  const own = (change: Update): Update => ({ ...change, metadata: { ...change.metadata, annotations: {} } });

  const fates: readonly (readonly [string, object, readonly Update[], string])[] = [
    ["is open before the Stack has recorded it", {}, [], "open"],
    ["is open while it waits", request("Pending"), [], "open"],
    ["is open while it is applied", request("Approved"), [applying(running)], "open"],
    [
      "is open again if the Update that was to apply it was withdrawn",
      request("Approved"),
      [applying(withdrawn)],
      "open",
    ],
    ["may be rejected", request("Rejected"), [], "rejected"],
    ["is not affected by the rejection of another one", request("Rejected", "another"), [], "open"],
    ["is applied, also for a later commit that it covers", request("Approved"), [applying(succeeded)], "applied"],
    ["is applied by an Update that failed", {}, [applying(failed)], "applied"],
    ["is superseded if nothing is left to apply", request("Superseded"), [], "superseded"],
    ["is superseded by a later update", {}, [sibling(other, "2030-01-01T00:00:01Z")], "superseded"],
    ["is superseded by a later plan that was applied", {}, [applying(succeeded, "another")], "superseded"],
    [
      "is superseded by a later plan of the same commit",
      {},
      [sibling(commit, "2030-01-01T00:00:01Z", running)],
      "superseded",
    ],
    ["is not superseded by one that has not started", {}, [sibling(commit, "2030-01-01T00:00:01Z")], "open"],
    ["is not superseded by an earlier update", {}, [sibling(other, "2029-12-31T23:59:59Z")], "open"],
    ["is not superseded by a drift check", {}, [{ ...sibling(other, "2030-01-01T00:00:01Z"), spec: drift }], "open"],
    ["is not superseded by an Update of a user", {}, [own(sibling(other, "2030-01-01T00:00:01Z"))], "open"],
  ];
  test.each(fates)("%s", (...row) => {
    const [, approval, siblings, expected] = row;
    const update = updateOf({ ...succeeded, plan }, planned);
    const status = { approval } as StackStatus;
    expect(subjectOf({ stack: { ...reporting, status }, update, siblings })?.plan?.kind).toBe(expected as "open");
  });

  test("without changes needs nothing", () => {
    const update = updateOf({ ...succeeded, plan: { ...plan, changes: false } }, planned);
    expect(subjectOf({ update })).not.toContainKey("plan");
  });
});

test("the comment of an earlier Update is known", () => {
  const report = { commentID: "9", time: "2029-12-31T00:00:00Z" };
  const siblings = [sibling(other, "2029-12-31T00:00:00Z", { report })];
  expect(subjectOf({ siblings })?.commentID).toBe("9");
  expect(subjectOf({ siblings, update: updateOf({ report: { commentID: "10" } }) })?.commentID).toBe("10");
});

test.each([
  ["7", 7],
  ["0", undefined],
  ["7/../8", undefined],
  ["", undefined],
])("the annotation %p names the pull request %p", (text, expected) => {
  const annotations = { [pullRequestAnnotation]: text };
  expect(subjectOf({ stack: { ...reporting, metadata: { ...stack.metadata, annotations } } })?.pullRequest).toBe(
    expected,
  );
});

describe("a preview of a pull request with the head of another one", () => {
  const owner = { apiVersion: "pulumi.com/v1", kind: "Stack", name: "web", uid: "stack-uid", controller: true };
  const previewOf = (number: number, head = commit): Stack => ({
    ...reporting,
    spec: { ...reporting.spec, preview: true, commit: head },
    metadata: {
      name: `web-pr-${number}`,
      namespace: "apps",
      uid: `uid-${number}`,
      annotations: { [pullRequestAnnotation]: String(number) },
      ownerReferences: [owner],
    },
  });
  const runOf = (number: number, status: UpdateStatus): Update => {
    const [name, uid] = [`web-pr-${number}`, `uid-${number}`];
    return updateOf(status, {
      metadata: { ...updateOf().metadata, name: `${name}-1`, uid: `run-${uid}`, ownerReferences: ownersOf(name, uid) },
      spec: { type: "preview", workspaceName: name },
    });
  };
  const scenes: readonly (readonly [string, UpdateStatus, UpdateStatus, Stack, boolean])[] = [
    ["says nothing while it runs, if that has a result", running, succeeded, previewOf(7), true],
    ["says nothing if it was cancelled, and that has a result", ended("Canceled"), failed, previewOf(7), true],
    ["counts when it has a result itself", failed, succeeded, previewOf(7), false],
    ["counts if that has no result either", running, ended("Canceled"), previewOf(7), false],
    ["counts if that has another head now", running, succeeded, previewOf(7, other), false],
  ];
  test.each(scenes)("%s", (...row) => {
    const [, status, result, another, expected] = row;
    const scene = {
      stacks: [reporting, previewOf(8), another],
      update: runOf(8, status),
      siblings: [runOf(7, result)],
    };
    expect(subjectOf(scene)?.isVoid).toBe(expected);
  });

  test.each([
    ["", previewOf(7)],
    [" to the branch of both", previewOf(7, other)],
  ])("says nothing if it was cancelled because of a push%s, and that has a result", (_, another) => {
    const stacks = [reporting, previewOf(8, other), another];
    const scene = { stacks, update: runOf(8, ended("Canceled")), siblings: [runOf(7, succeeded)] };
    expect(subjectOf(scene)?.isVoid).toBe(true);
  });
});

describe("a preview of a pull request that is deleted", () => {
  const parent: Stack = { ...stack, spec: { ...stack.spec, pullRequests: { type: "GitHub" } } };
  const owner = { apiVersion: "pulumi.com/v1", kind: "Stack", name: "web", uid: "stack-uid", controller: true };
  const deletionTimestamp = "2030-01-01T00:00:00Z";
  const child: Stack = {
    ...reporting,
    spec: { ...reporting.spec, preview: true },
    metadata: {
      name: "web-pr-7",
      namespace: "apps",
      uid: "child-uid",
      annotations: { [pullRequestAnnotation]: "7" },
      ownerReferences: [owner],
      deletionTimestamp,
    },
  };
  const ownerReferences = ownersOf("web-pr-7", "child-uid");
  const update = updateOf(running, {
    metadata: { ...updateOf().metadata, ownerReferences },
    spec: { type: "preview", workspaceName: "web-pr-7" },
  });
  const { deletionTimestamp: _, ...metadata } = child.metadata;

  const scenes: readonly (readonly [string, readonly Stack[], boolean])[] = [
    ["not while its Stack previews pull requests, and reports that itself", [parent, child], false],
    ["if its Stack previews none any more", [stack, child], true],
    ["if its Stack is deleted", [{ ...parent, metadata: { ...stack.metadata, deletionTimestamp } }, child], true],
    ["if its Stack no longer exists", [child], true],
    ["if another Stack has the name", [{ ...parent, metadata: { ...stack.metadata, uid: "new" } }, child], true],
    ["not before it is deleted", [stack, { ...child, metadata }], false],
    ["not if it is a Stack that deploys, whatever its annotations", [stack, { ...child, spec: reporting.spec }], false],
  ];
  test("is reported also if an earlier one of the same commit has a result: its Stack waits for that", () => {
    const earlier = sibling(commit, "2029-12-31T23:59:59Z", succeeded);
    const siblings = [
      { ...update, ...earlier, metadata: { ...earlier.metadata, ownerReferences }, spec: update.spec ?? {} },
    ];
    const waiting = { ...update, status: {} };
    expect(subjectOf({ stacks: [stack, child], update: waiting, siblings })?.isVoid).toBe(false);
    expect(subjectOf({ stacks: [parent, child], update: waiting, siblings })?.isVoid).toBe(true);
  });

  test.each(scenes)("has no result: %s", (_name, stacks, expected) => {
    expect(subjectOf({ stacks, update })?.isAbandoned).toBe(expected);
  });

  const deleting: Stack = { ...parent, metadata: { ...parent.metadata, deletionTimestamp } };
  const changes: readonly (readonly [string, Stack | undefined, Stack | undefined, readonly string[]])[] = [
    ["stops previewing pull requests", parent, stack, ["web", "web-pr-7"]],
    ["starts previewing pull requests", stack, parent, ["web", "web-pr-7"]],
    ["is deleted", parent, deleting, ["web", "web-pr-7"]],
    ["no longer exists", parent, undefined, ["web-pr-7"]],
    ["changes in another way", parent, { ...parent, status: {} }, ["web"]],
    ["previews none, and changes", stack, { ...stack, status: {} }, ["web"]],
    ["no longer exists, after its previews were abandoned", deleting, undefined, []],
  ];
  test.each(changes)("is reconciled if its Stack %s", (...row) => {
    const [, before, after, expected] = row;
    const previews = storeOf([child], ({ metadata: { ownerReferences } }) => ownerReferences?.[0]?.uid ?? "");
    const concerned = stacksConcernedBy(previews, { key: "apps/web", before, after } as Change<Stack>);
    expect(concerned.map((each) => each.metadata.name ?? "")).toEqual([...expected]);
  });
});

test("a Stack is suspended by itself or with the whole operator", () => {
  expect(subjectOf({ isSuspended: true })?.isSuspended).toBe(true);
  expect(subjectOf({ stack: { ...reporting, spec: { ...reporting.spec, suspend: true } } })?.isSuspended).toBe(true);
});

test("pauses end when they should, however the wall clock was set since they began", async () => {
  const limits = new ForgeLimits(() => undefined);
  const failure = { error: "rateLimited", at: 5000, retryAfterMs: 60_000 } as const;
  const line = forgeLine(reporting, subjectOf({})?.target.url);
  await limits.run({ line, key: "apps/web-1", send: async () => failure, failureIn: (result) => result });
  const memory = { failures: 1, retryAt: 65_000 };
  const view = observed({ limits, moment: { now, monotonic: 35_000, memory } });
  expect(view?.memory).toEqual({ failures: 1, retryAt: now + 30_000 });
  expect(view?.subject?.forge.restUntil).toBeWithin(now + 24_000, now + 36_001);
  expect(subjectOf({ moment: { monotonic: 35_000 } })?.forge.restUntil).toBeLessThanOrEqual(now);
});
