import { describe, expect, test } from "bun:test";
import { maxCancelledPreviews, type Condition, type Stack, type StackSpec, type StackStatus } from "@pko/api";

import { jittered } from "../../shared/pauses.ts";
import { pullRequestEvents } from "../events.ts";
import { pullRequestsStatus } from "../status.ts";
import { aParent, aPreview, aPullRequest, commits, now, viewOf } from "../testing/views.ts";
import type { ListedPullRequests } from "../poller.ts";
import type { Blockage, ForgeView, PullRequestsView } from "../view.ts";
import { planPullRequests } from "./index.ts";

const [first, second] = commits;
const parent = aParent();
const listed = (...numbers: readonly number[]): ForgeView => ({
  kind: "listed",
  pullRequests: numbers.map((number) => aPullRequest(number)),
});
const previewing = (number: number, status?: StackStatus): Stack => aPreview(parent, { number, commit: first }, status);
const deleting = (stack: Stack): Stack => ({
  ...stack,
  metadata: { ...stack.metadata, deletionTimestamp: "2030-01-01T00:00:00Z" },
});

/** `apply 1@a` for each preview that is written, `delete 1` for each that is deleted, `report 1@a` for each without a result. */
function stepsOf(view: PullRequestsView): string[] {
  return planPullRequests(view).steps.flatMap((step) => {
    switch (step.kind) {
      case "applyPreviews":
        return step.previews.map(({ number, stack }) => `apply ${number}@${stack.spec.commit?.[0]}`);
      case "deletePreviews":
        return step.previews.map(({ metadata }) => `delete ${metadata.annotations?.["pulumi.com/pull-request"]}`);
      case "reportCancelled":
        return step.previews.map(({ number, commit }) => `report ${number}@${commit[0]}`);
    }
  });
}

function conditionOf(view: PullRequestsView): Condition | undefined {
  const { conditions = [] } = pullRequestsStatus(view, planPullRequests(view));
  return conditions.find(({ type }) => type === "PullRequestsPreviewed");
}

const state = "Pending";
const foreign: Blockage = { kind: "foreign", occupant: { kind: "Stack", namespace: "default", name: "web-pr-2" } };
const denied: Blockage = { kind: "rejected", rejection: { kind: "denied", explanation: "exceeded quota" } };
const moved: ListedPullRequests = {
  kind: "listed",
  pullRequests: [aPullRequest(1, { head: { ref: "x", commit: second } })],
};
const truncated = (number?: number, closed: readonly number[] = []): ListedPullRequests => ({
  kind: "listed",
  pullRequests: number === undefined ? [] : [aPullRequest(number)],
  truncated: { closed },
});
const withoutCommit = (stack: Stack): Stack => {
  const { commit: _, ...spec } = stack.spec;
  return { ...stack, spec: { ...spec, branch: "main" } };
};
const unaffected: PullRequestsView["heads"] = { unaffected: new Set([first]), uncompared: new Set() };
const uncompared: PullRequestsView["heads"] = { unaffected: new Set(), uncompared: new Set([second]) };
const pushed = (number: number) => aPullRequest(number, { head: { ref: "x", commit: second } });
const limited = aParent({ pullRequests: { type: "GitHub", secretRef: { name: "forge" }, limit: 1 } });
const suspend = aParent({ suspend: true });
const without = (spec: Partial<StackSpec> = {}): Stack => {
  const { pullRequests: _, ...rest } = parent.spec;
  return { ...parent, spec: { ...rest, ...spec } };
};

type Row = readonly [string, Partial<PullRequestsView>, readonly string[], string | undefined];
const cases: readonly Row[] = [
  ["a Stack without a status waits for it", { stack: { ...parent, status: {} }, forge: listed(1) }, [], undefined],
  ["a new pull request gets a preview", { forge: listed(1) }, ["apply 1@a"], "PreviewsCurrent"],
  ["a pull request with a preview keeps it", { forge: listed(1), previews: [previewing(1)] }, [], "PreviewsCurrent"],
  [
    "a pushed pull request moves its preview",
    { forge: moved, previews: [previewing(1)] },
    ["apply 1@b"],
    "PreviewsCurrent",
  ],
  [
    "a closed pull request loses its preview",
    { forge: listed(2), previews: [previewing(1), previewing(2)] },
    ["delete 1"],
    "PreviewsCurrent",
  ],
  ["a preview is deleted once", { forge: listed(), previews: [deleting(previewing(1))] }, [], "PreviewsCurrent"],
  [
    "a pull request that is opened again waits until its former preview is deleted",
    { forge: listed(1), previews: [deleting(previewing(1))] },
    [],
    "PreviewsCurrent",
  ],
  [
    "a truncated list ends no preview of a pull request that it lacks",
    { forge: truncated(2), previews: [previewing(1), previewing(2)] },
    [],
    "PreviewsCurrent",
  ],
  [
    "a truncated list creates and moves previews",
    { forge: { ...truncated(3), pullRequests: [...moved.pullRequests, aPullRequest(3)] }, previews: [previewing(1)] },
    ["apply 3@a", "apply 1@b"],
    "PreviewsCurrent",
  ],
  [
    "a pull request that is known to be closed loses its preview, although the list is truncated",
    { forge: truncated(2, [1]), previews: [previewing(1), previewing(2)] },
    ["delete 1"],
    "PreviewsCurrent",
  ],
  [
    "a listed pull request that is no longer selected loses its preview, although the list is truncated",
    {
      forge: { ...truncated(), pullRequests: [aPullRequest(1, { base: { ref: "other" } })] },
      previews: [previewing(1)],
    },
    ["delete 1"],
    "PreviewsCurrent",
  ],
  [
    "a preview that a truncated list lacks follows the spec of the Stack",
    { stack: aParent({ config: { a: "b" } }), forge: truncated(), previews: [previewing(1)] },
    ["apply 1@a"],
    "PreviewsCurrent",
  ],
  ["a first list is waited for", { forge: { kind: "pending" }, previews: [previewing(1)] }, [], "ForgePending"],
  [
    "a forge that does not respond ends no preview",
    { forge: { kind: "failed", problem: "unreachable", message: "it is down" }, previews: [previewing(1)] },
    [],
    "ForgeUnavailable",
  ],
  [
    "a forge that rejects the credentials ends no preview",
    { forge: { kind: "failed", problem: "rejected", message: "no" }, previews: [previewing(1)] },
    [],
    "ForgeRejected",
  ],
  [
    "missing credentials are reported",
    { forge: { kind: "failed", problem: "credentials", message: "no Secret" } },
    [],
    "ForgeCredentialsMissing",
  ],
  [
    "an invalid spec leaves previews alone",
    { stack: aParent({ stack: "-x" }), previews: [previewing(1)] },
    [],
    "ForgePending",
  ],
  [
    "a suspended Stack suspends its previews",
    { stack: suspend, previews: [previewing(1)] },
    ["apply 1@a"],
    "PreviewsSuspended",
  ],
  [
    "a preview of no commit, which somebody has changed, is not written while the Stack is suspended",
    { stack: suspend, previews: [withoutCommit(previewing(1))] },
    [],
    "PreviewsSuspended",
  ],
  [
    "previews that are suspended stay so",
    { stack: suspend, previews: [aPreview(suspend, { number: 1, commit: first })] },
    [],
    "PreviewsSuspended",
  ],
  [
    "a suspended operator changes nothing",
    { operatorSuspended: true, previews: [previewing(1)], forge: { kind: "none" } },
    [],
    "PreviewsSuspended",
  ],
  [
    "a Stack without pullRequests deletes its previews",
    { stack: without(), previews: [previewing(1)] },
    ["delete 1"],
    undefined,
  ],
  [
    "a deleted Stack deletes its previews",
    { stack: deleting(parent), previews: [previewing(1)] },
    ["delete 1"],
    undefined,
  ],
  [
    "a pull request gets no preview, and keeps the one that it has, while it is not known what its head changes",
    { forge: { kind: "listed", pullRequests: [pushed(1), pushed(2)] }, previews: [previewing(1)], heads: uncompared },
    [],
    "PreviewsCurrent",
  ],
  [
    "previews start and end while it is not known what the head of another pull request changes",
    {
      forge: { kind: "listed", pullRequests: [aPullRequest(1), pushed(2)] },
      previews: [previewing(2), previewing(3)],
      heads: uncompared,
    },
    ["delete 3", "apply 1@a"],
    "PreviewsCurrent",
  ],
  [
    "a preview does not end for a newer pull request of which it is not known what it changes",
    {
      stack: limited,
      forge: { kind: "listed", pullRequests: [aPullRequest(1), pushed(2)] },
      previews: [aPreview(limited, { number: 1, commit: first })],
      heads: uncompared,
    },
    [],
    "PreviewsCurrent",
  ],
  [
    "a preview does not start in the place of a newer pull request of which it is not known what it changes",
    { stack: limited, forge: { kind: "listed", pullRequests: [aPullRequest(1), pushed(2)] }, heads: uncompared },
    [],
    "PreviewsCurrent",
  ],
  [
    "a preview that exceeds the limit in any case ends",
    {
      stack: limited,
      forge: { kind: "listed", pullRequests: [aPullRequest(1), aPullRequest(3), pushed(2)] },
      previews: [aPreview(limited, { number: 1, commit: first })],
      heads: uncompared,
    },
    ["delete 1", "apply 3@a"],
    "PreviewsCurrent",
  ],
  [
    "a pull request that changes nothing under the path filters gets no preview",
    { forge: listed(1), heads: unaffected },
    [],
    "PreviewsCurrent",
  ],
  [
    "a preview ends when its pull request no longer changes anything under the path filters",
    { forge: listed(1), previews: [previewing(1)], heads: unaffected },
    ["delete 1"],
    "PreviewsCurrent",
  ],
  [
    "one of another commit is previewed",
    { forge: moved, previews: [previewing(1)], heads: unaffected },
    ["apply 1@b"],
    "PreviewsCurrent",
  ],
  [
    "names that are taken are reported, and the others are previewed",
    { forge: listed(1, 2), previews: [previewing(1)], blocked: new Map([[2, foreign]]) },
    [],
    "PreviewsBlocked",
  ],
];
test.each(cases)("%s", (...row) => {
  const [, changes, steps, reason] = row;
  const view = viewOf(changes);
  expect(stepsOf(view)).toEqual([...steps]);
  expect(conditionOf(view)?.reason).toBe(reason as string);
});

test("an invalid spec is the reason why nothing is read", () => {
  expect(conditionOf(viewOf({ stack: aParent({ stack: "-x" }) }))?.message).toStartWith(
    "The spec of the Stack is invalid",
  );
});

test("what blocks a preview is explained, and checked again after about a minute", () => {
  const view = viewOf({
    forge: listed(1, 2),
    blocked: new Map<number, Blockage>([
      [1, denied],
      [2, foreign],
    ]),
  });
  expect(conditionOf(view)).toMatchObject({
    status: "False",
    message:
      "Pull request 1 has no preview, because the API server rejected Stack web-pr-1: exceeded quota Pull request 2 has no preview: Stack default/web-pr-2 (without an owner) already exists and was not created for Stack web-pr-2, so nothing was changed. Delete or rename it, or use another name for the Stack; this is checked again automatically.",
  });
  expect(planPullRequests(view).requeueAt).toBe(now + jittered(60_000, "uid-1"));
});

describe("the status", () => {
  const shown = (view: PullRequestsView) =>
    pullRequestsStatus(view, planPullRequests(view)).pullRequests?.map(({ number, state }) => `${number} ${state}`);

  const finished = (state: string): StackStatus => ({
    observedGeneration: 1,
    lastUpdate: { generation: 1, lastAttemptedCommit: first, state },
  });
  const stalled: StackStatus = {
    observedGeneration: 1,
    conditions: [
      {
        type: "Stalled",
        status: "True",
        reason: "WorkspaceFailed",
        message: "",
        lastTransitionTime: "2030-01-01T00:00:00Z",
      },
    ],
  };
  const states: readonly (readonly [string, StackStatus | undefined])[] = [
    ["Pending", undefined],
    ["Running", { currentUpdate: { name: "u", commit: first } }],
    ["Pending", { currentUpdate: { name: "u", commit: second } }],
    ["Succeeded", finished("succeeded")],
    ["Failed", finished("failed")],
    [
      "Pending",
      { ...finished("succeeded"), lastUpdate: { generation: 0, lastAttemptedCommit: first, state: "succeeded" } },
    ],
    ["Failed", stalled],
    ["Pending", { ...stalled, observedGeneration: 0 }],
  ];
  test.each(states)("shows a preview as %s for %j", (state, status) => {
    expect(shown(viewOf({ forge: listed(1), previews: [previewing(1, status)] }))).toEqual([`1 ${state}`]);
  });

  test("shows a preview of an earlier head as Pending, and one that cannot be written as Blocked", () => {
    expect(shown(viewOf({ forge: moved, previews: [previewing(1, finished("succeeded"))] }))).toEqual(["1 Pending"]);
    expect(shown(viewOf({ forge: listed(1), blocked: new Map([[1, foreign]]) }))).toEqual(["1 Blocked"]);
  });

  test("names the commit, the page and the Stack, the newest pull request first", () => {
    const view = viewOf({ forge: listed(1, 2) });
    const { pullRequests = [] } = pullRequestsStatus(view, planPullRequests(view));
    expect(pullRequests.map(({ number }) => number)).toEqual([2, 1]);
    expect(pullRequests[1]).toEqual({
      number: 1,
      url: "https://github.com/acme/web/pull/1",
      commit: first,
      stack: "web-pr-1",
      state: "Pending",
    });
  });

  const ready: Condition = {
    type: "Ready",
    status: "True",
    reason: "x",
    message: "",
    lastTransitionTime: "2030-01-01T00:00:00Z",
  };
  const before: StackStatus = {
    conditions: [ready],
    deployed: true,
    pullRequests: [{ number: 1, commit: first, stack: "web-pr-1", state: "Running" }],
  };

  test("keeps what the Stack controller has written, and the list while the forge does not respond", () => {
    const forge = { kind: "failed", problem: "unreachable", message: "it is down" } as const;
    const previews = [previewing(1, finished("succeeded"))];
    const view = viewOf({ stack: aParent({}, before), forge, previews });
    const { conditions, deployed, pullRequests } = pullRequestsStatus(view, planPullRequests(view));
    expect([conditions?.[0], deployed]).toEqual([ready, true]);
    expect(pullRequests).toEqual([{ number: 1, commit: first, stack: "web-pr-1", state: "Succeeded" }]);
  });

  test("has no trace of pull requests when they are no longer previewed", () => {
    const view = viewOf({ stack: { ...without(), status: { observedGeneration: 1, ...before } } });
    expect(pullRequestsStatus(view, planPullRequests(view))).toEqual({
      observedGeneration: 1,
      conditions: [ready],
      deployed: true,
    });
  });

  test("says how many change nothing under the path filters, of those that match", () => {
    const unrelated = aPullRequest(4, { base: { ref: "other" } });
    const open = [aPullRequest(1), aPullRequest(2), unrelated, aPullRequest(3, { head: { ref: "x", commit: second } })];
    const message = (heads: PullRequestsView["heads"]) =>
      conditionOf(viewOf({ forge: { kind: "listed", pullRequests: open }, heads }))?.message;
    expect(message(unaffected)).toBe(
      "1 open pull request has a preview. 2 others have no changes under spec.pathFilters, and no preview.",
    );
    expect(message({ unaffected: new Set([second]), uncompared: new Set() })).toBe(
      "2 open pull requests have a preview. 1 other has no changes under spec.pathFilters, and no preview.",
    );
  });

  test("says that heads are compared, and keeps the entries of previews, also of blocked ones, until their heads are", () => {
    const pullRequests = [1, 2].map((number) => ({ number, commit: first, stack: `web-pr-${number}`, state }) as const);
    const view = viewOf({
      stack: aParent({}, { pullRequests: [...pullRequests] }),
      forge: { kind: "listed", pullRequests: [pushed(1), pushed(2)] },
      previews: [previewing(1)],
      runs: [{ number: 1, commit: first, isReported: false }],
      heads: uncompared,
    });
    expect(pullRequestsStatus(view, planPullRequests(view))).toMatchObject({ pullRequests: [...pullRequests] });
    expect(pullRequestsStatus(view, planPullRequests(view))).not.toContainKey("cancelledPreviews");
    const one = { ...view, forge: { kind: "listed", pullRequests: [pushed(1)] } } as const;
    for (const each of [view, one]) {
      expect(conditionOf(each)?.message).toStartWith("Some open pull requests are being compared");
    }
    expect(pullRequestEvents(view, planPullRequests(view))).toEqual([]);
  });

  test("says what is left out", () => {
    const open = [aPullRequest(1), aPullRequest(2), aPullRequest(3, { isFork: true })];
    const stack = aParent({ pullRequests: { type: "GitHub", secretRef: { name: "forge" }, limit: 1 } });
    expect(conditionOf(viewOf({ stack, forge: { kind: "listed", pullRequests: open } }))?.message).toBe(
      "1 open pull request has a preview. 1 older one exceeds spec.pullRequests.limit. 1 from a fork is not previewed, because spec.pullRequests.allowForks is not set.",
    );
  });
});

describe("a preview without a result", () => {
  test("does not replace the result of another open pull request with the same head", () => {
    const stack = aParent({}, { cancelledPreviews: [{ number: 1, commit: first }] });
    const view = viewOf({ stack, forge: listed(2), previews: [aPreview(stack, { number: 2, commit: first })] });
    expect(stepsOf(view)).toEqual([]);
    expect(pullRequestsStatus(view, planPullRequests(view))).not.toContainKey("cancelledPreviews");
  });

  const run = { number: 1, commit: first, isReported: false };
  const cancelled = [{ number: 1, commit: first }];
  const before = aParent({}, { cancelledPreviews: cancelled });
  const shown = (view: PullRequestsView) => pullRequestsStatus(view, planPullRequests(view)).cancelledPreviews;

  test("is recorded when its pull request is closed, before it is deleted", () => {
    const view = viewOf({ previews: [previewing(1)], runs: [run] });
    expect([stepsOf(view), shown(view)]).toEqual([[], cancelled]);
    expect(planPullRequests(view).requeueAt).toBe(now);
    const recorded = { ...view, stack: before };
    expect([stepsOf(recorded), shown(recorded)]).toEqual([["delete 1"], cancelled]);
    expect(planPullRequests(recorded).requeueAt).toBe(now + jittered(10_000, "uid-1"));
  });

  test("is recorded when its pull request has a new head, before the preview is moved", () => {
    const view = viewOf({ forge: moved, previews: [previewing(1)], runs: [run] });
    expect([stepsOf(view), shown(view)]).toEqual([[], cancelled]);
    expect(stepsOf({ ...view, stack: before })).toEqual(["apply 1@b"]);
  });

  test("does not hold up others if the status can record no more", () => {
    const full = Array.from({ length: maxCancelledPreviews }, (_, index) => ({ number: index + 2, commit: second }));
    const view = viewOf({ stack: aParent({}, { cancelledPreviews: full }), previews: [previewing(1)], runs: [run] });
    expect(stepsOf(view)).toEqual(["delete 1"]);
  });

  test("is reported when its run no longer exists, and then forgotten", () => {
    const view = viewOf({ stack: before });
    expect(planPullRequests(view).steps).toEqual([
      {
        kind: "reportCancelled",
        previews: [
          { number: 1, commit: first, description: "no result: the pull request was closed or is no longer selected" },
        ],
      },
    ]);
    const answered = { ...view, answered: cancelled };
    expect([stepsOf(answered), shown(answered)]).toEqual([[], undefined]);
    expect(planPullRequests(answered)).not.toContainKey("requeueAt");
  });

  test("is not reported while its run exists, which may still have a result", () => {
    expect(planPullRequests(viewOf({ stack: before, runs: [run] })).steps).toEqual([]);
    const others = [{ number: 2, commit: second }];
    const stack = aParent({}, { cancelledPreviews: [...cancelled, ...others] });
    const { steps, requeueAt } = planPullRequests(viewOf({ stack, runs: [run], answered: others }));
    expect([steps, requeueAt]).toEqual([[], now + jittered(60_000, "uid-1")]);
  });

  test("is reported with the reason, after other previews are written, and also if one of them is blocked", () => {
    const view = viewOf({ stack: before, forge: moved });
    expect(stepsOf(view)).toEqual(["apply 1@b"]);
    const written = { ...view, previews: [aPreview(before, { number: 1, commit: second })] };
    expect(planPullRequests(written).steps).toMatchObject([
      { previews: [{ description: "no result: the pull request has a new head" }] },
    ]);
    expect(stepsOf({ ...view, blocked: new Map([[1, foreign]]) })).toEqual(["report 1@a"]);
  });

  test("is reported in several passes if there are many, so that each ends in time", () => {
    const many = Array.from({ length: 12 }, (_, at) => ({ number: at + 1, commit: second }));
    const reportOf = (stack: Stack, answered?: typeof many) => {
      const plan = planPullRequests(viewOf({ stack, forge: listed(), ...(answered && { answered }) }));
      const [step] = plan.steps;
      const previews = step?.kind === "reportCancelled" ? step.previews : [];
      return { numbers: previews.map(({ number }) => number), requeueAt: plan.requeueAt };
    };
    const stack = aParent({}, { cancelledPreviews: many });
    expect(reportOf(stack).numbers).toEqual([1, 2, 3]);
    expect(reportOf(stack, many.slice(0, 3))).toEqual({ numbers: [], requeueAt: now });
    const rest = aParent({}, { cancelledPreviews: many.slice(10) });
    expect(reportOf(rest).numbers).toEqual([11, 12]);
    expect(reportOf(rest, many.slice(10, 11))).toEqual({ numbers: [], requeueAt: now });
  });

  test("is reported later if the forge does not respond", () => {
    const failed = viewOf({ stack: before, answered: [] });
    expect([stepsOf(failed), shown(failed)]).toEqual([[], cancelled]);
    expect(planPullRequests(failed).requeueAt).toBe(now + jittered(60_000, "uid-1"));
    const forge: ForgeView = { kind: "failed", problem: "unreachable", message: "it is down" };
    expect(shown(viewOf({ stack: before, forge }))).toEqual(cancelled);
  });
});

test("a truncated list is reported, and the previews that it lacks stay in the status", () => {
  const pullRequests = [1, 2].map((number) => ({ number, commit: first, stack: `web-pr-${number}`, state }) as const);
  const view = viewOf({
    stack: aParent({}, { pullRequests: [...pullRequests] }),
    forge: truncated(3),
    previews: [previewing(1), previewing(3)],
  });
  const status = pullRequestsStatus(view, planPullRequests(view));
  expect(status.pullRequests?.map(({ number }) => number)).toEqual([3, 1]);
  expect(conditionOf(view)?.message).toContain("more open pull requests, or longer ones, than the operator reads");
  const closed = pullRequestEvents(view, planPullRequests(view)).filter(({ reason }) => reason.endsWith("Closed"));
  expect(closed.map(({ message }) => message)).toEqual([expect.stringContaining("Pull request 2 ") as string]);
});

test("a fork whose commits the target does not have is fetched from there, and reported to the target", () => {
  const secretRef = { name: "forge" };
  const spec: Partial<StackSpec> = {
    projectRepo: "https://bitbucket.org/acme/web.git",
    pullRequests: { type: "Bitbucket", secretRef, allowForks: true },
  };
  const stack = aParent(spec);
  const head = { ref: "x", commit: first, repository: "someone/fork" };
  const forge: ForgeView = { kind: "listed", pullRequests: [aPullRequest(1, { isFork: true, head })] };
  const [step] = planPullRequests(viewOf({ stack, forge })).steps;
  const child = step?.kind === "applyPreviews" ? step.previews[0]?.stack : undefined;
  expect(child?.spec).toMatchObject({
    projectRepo: "https://bitbucket.org/someone/fork.git",
    report: { type: "Bitbucket", repository: "acme/web", secretRef },
  });
  const suspended = aParent({ ...spec, suspend: true });
  const [again] = planPullRequests(viewOf({ stack: suspended, previews: child ? [child] : [] })).steps;
  expect(again).toMatchObject({ previews: [{ stack: { spec: { projectRepo: child?.spec.projectRepo } } }] });
});

describe("an event", () => {
  const events = (view: PullRequestsView): string[] =>
    pullRequestEvents(view, planPullRequests(view)).map(({ reason, message }) => `${reason}: ${message}`);
  const pullRequests = [1, 2].map((number) => ({
    number,
    commit: first,
    stack: `web-pr-${number}`,
    state: "Pending" as const,
  }));

  test("reports each pull request that was opened, pushed or closed", () => {
    const forge: ForgeView = {
      kind: "listed",
      pullRequests: [aPullRequest(2, { head: { ref: "x", commit: second } }), aPullRequest(3)],
    };
    expect(events(viewOf({ stack: aParent({}, { pullRequests }), forge }))).toEqual([
      "StackPullRequestOpened: Pull request 3 is previewed by Stack web-pr-3.",
      "StackPullRequestMoved: Pull request 2 has the new head bbbbbbbbbbbb, which is previewed instead of the old one.",
      "StackPullRequestClosed: Pull request 1 was closed or is no longer selected; Stack web-pr-1 is deleted.",
    ]);
  });

  test("reports a failure once", () => {
    const forge = { kind: "failed", problem: "unreachable", message: "it is down" } as const;
    const view = viewOf({ forge });
    expect(events(view)).toEqual(["StackPullRequestsFailed: it is down"]);
    const status = pullRequestsStatus(view, planPullRequests(view));
    expect(events(viewOf({ stack: { ...parent, status }, forge }))).toEqual([]);
  });
});
