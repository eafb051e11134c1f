import { describe, expect, test } from "bun:test";
import type { UpdateReport, UpdateStatus } from "@pko/api";

import { markerOf, reportDigest } from "../desired/commit-status.ts";
import { jittered } from "../../shared/pauses.ts";
import { reportEvents } from "../events.ts";
import { reportStatus } from "../status.ts";
import { access, failed, now, secret, subject, succeeded, updateOf, viewOf, running } from "../testing/views.ts";
import type { Answer, ReportView } from "../view.ts";
import { planReport } from "./index.ts";

const stepsOf = (view: ReportView): string[] => planReport(view).steps.map(({ kind }) => kind);
const reportOf = (view: ReportView): UpdateReport | undefined => reportStatus(view, planReport(view)).report;
const answered = (answer: Answer, changes: Partial<ReportView> = {}): ReportView =>
  viewOf({ access, answer, ...changes });
const withReport = (report: UpdateReport, status: UpdateStatus = running) => updateOf({ ...status, report });
const ended = withReport({ due: true }, succeeded);
const preview = (status: UpdateStatus) =>
  updateOf({ ...status, report: { due: true } }, { spec: { type: "preview", workspaceName: "web" } });
const planned = (state: "pending" | "failure", problem?: "Unavailable") =>
  withReport({ digest: "d", state, ...(problem && { problem }) }, succeeded);
const superseded = { ...subject, plan: { kind: "superseded" } } as const;
const digest = reportDigest(updateOf(running), subject);
const done = reportDigest(updateOf(succeeded), subject);

const steps: readonly (readonly [string, ReportView, readonly string[]])[] = [
  ["reads the credentials first", viewOf(), ["readCredentials"]],
  ["then sends", viewOf({ access }), ["send"]],
  ["is nothing without settings, commit or repository", { now, update: updateOf() }, []],
  ["is left to a later Update of the same commit", viewOf({ subject: { ...subject, isSuperseded: true } }), []],
  ["does not begin before the start if the commit has a result", viewOf({ subject: { ...subject, isVoid: true } }), []],
  ["does not begin while the Stack is suspended", viewOf({ subject: { ...subject, isSuspended: true } }), []],
  [
    "of a run that started before the suspension is finished",
    viewOf({ access, subject: { ...subject, isSuspended: true }, update: ended }),
    ["send"],
  ],
  ["is not repeated", viewOf({ access, update: withReport({ digest, state: "running" }) }), []],
  [
    "is recorded, not repeated, if the status is behind",
    viewOf({ update: updateOf(running), unrecorded: { digest } }),
    [],
  ],
  [
    "is repeated with a new state, if the status is behind",
    viewOf({ access, update: ended, unrecorded: { digest } }),
    ["send"],
  ],
  ["is repeated with a new state", viewOf({ access, update: withReport({ digest }, succeeded) }), ["send"]],
  [
    "is repeated after a problem",
    viewOf({ access, update: withReport({ digest, state: "running", problem: "Unavailable" }) }),
    ["send"],
  ],
  [
    "is recorded as due at the end of a run, before anything is sent",
    viewOf({ access, update: updateOf(succeeded) }),
    [],
  ],
  ["that is due is sent", viewOf({ access, update: ended }), ["send"]],
  [
    "of an Update that ended before the Stack reported is left out",
    viewOf({ access, update: updateOf(succeeded), subject: { ...subject, isNamed: false } }),
    [],
  ],
  [
    "of an Update that the Stack no longer names is sent if it is due",
    viewOf({ access, update: ended, subject: { ...subject, isNamed: false } }),
    ["send"],
  ],
  ["waits after a failure", viewOf({ access, memory: { failures: 1, retryAt: now + 1 } }), []],
  ["is repeated after the pause", viewOf({ access, memory: { failures: 1, retryAt: now } }), ["send"]],
  [
    "waits while the forge rests",
    viewOf({ access, subject: { ...subject, forge: { isBusy: false, restUntil: now + 1 } } }),
    [],
  ],
  ["waits for others", viewOf({ access, subject: { ...subject, forge: { isBusy: true, restUntil: 0 } } }), []],
  [
    "of a preview of a pull request needs details",
    viewOf({ access, update: preview(succeeded), subject: { ...subject, pullRequest: 7 } }),
    ["readDetails"],
  ],
  [
    "of a preview that runs needs none",
    viewOf({ access, update: preview(running), subject: { ...subject, pullRequest: 7 } }),
    ["send"],
  ],
  [
    "of a preview needs none if a later preview writes the comment",
    viewOf({ access, update: preview(succeeded), subject: { ...subject, pullRequest: 7, isCommentOutdated: true } }),
    ["send"],
  ],
  [
    "of a plan is repeated when the plan is superseded",
    viewOf({ access, update: planned("pending"), subject: superseded }),
    ["send"],
  ],
  [
    "that a plan was rejected or applied is final",
    viewOf({ access, update: planned("failure"), subject: superseded }),
    [],
  ],
  [
    "that a plan was rejected is repeated after a problem",
    viewOf({ access, update: planned("failure", "Unavailable"), subject: superseded }),
    ["send"],
  ],
  [
    "of a superseded plan is sent if nothing was reported while the plan was open",
    viewOf({ access, update: ended, subject: superseded }),
    ["send"],
  ],
  [
    "of a run without a plan is repeated if its result is not what was reported",
    viewOf({ access, update: withReport({ digest: "d", state: "failure" }, succeeded) }),
    ["send"],
  ],
  ["of a preview without pull request needs none", viewOf({ access, update: preview(succeeded) }), ["send"]],
];
test.each(steps)("a report %s", (_, view, expected) => {
  expect(stepsOf(view)).toEqual([...expected]);
});

test("a comment is sent with the status", () => {
  const view = viewOf({
    access,
    details: { outputs: [] },
    update: preview(succeeded),
    subject: { ...subject, pullRequest: 7 },
  });
  expect(planReport(view).steps).toMatchObject([
    {
      kind: "send",
      report: {
        status: { state: "success" },
        comment: { pullRequest: 7, marker: markerOf({ ...subject, pullRequest: 7 }) },
      },
    },
  ]);
});

test("an outdated comment is not sent, but the status is, and nothing that was reported is repeated", () => {
  const outdated = { ...subject, pullRequest: 7, isCommentOutdated: true };
  const update = preview(succeeded);
  const [step] = planReport(viewOf({ access, details: { outputs: [] }, update, subject: outdated })).steps;
  expect(step).toMatchObject({ kind: "send", report: { status: { state: "success" } } });
  expect(JSON.stringify(step)).not.toContain("comment");
  expect(reportDigest(update, outdated)).toBe(reportDigest(update, { ...outdated, isCommentOutdated: false }));
});

describe("the status", () => {
  test("records what was delivered, and nothing else changes", () => {
    const view = answered({ kind: "delivered", digest: done, commentID: "9" }, { update: updateOf(succeeded) });
    expect(reportStatus(view, planReport(view))).toEqual({
      ...succeeded,
      report: {
        digest: done,
        state: "success",
        time: "2030-01-01T00:00:00Z",
        commentID: "9",
      },
    });
  });

  test("shows that a report is due until it is delivered", () => {
    const forge = { isBusy: false, restUntil: now + 1 };
    const view = viewOf({ access, update: updateOf(succeeded), subject: { ...subject, forge } });
    expect(reportOf(view)).toEqual({ due: true });
    const delivered = answered({ kind: "delivered", digest: done }, { update: ended });
    expect(reportOf(delivered)).not.toContainKey("due");
    const before = viewOf({ update: updateOf(succeeded), subject: { ...subject, isNamed: false } });
    expect(reportOf(before)).toBeUndefined();
  });

  test("of a superseded Update has no report, so that nothing is due for it", () => {
    const view = viewOf({
      update: withReport({ digest, state: "running" }),
      subject: { ...subject, isSuperseded: true },
    });
    expect(reportStatus(view, planReport(view))).toEqual(running);
  });

  const problems: readonly (readonly [string, Partial<ReportView>, string, string])[] = [
    ["a missing Secret", { access: { kind: "missing", secret } }, "SecretMissing", "Secret forge does not exist"],
    ["a missing permission", { access: { kind: "forbidden", secret } }, "SecretMissing", "may not read Secret forge"],
    ["a useless Secret", { access: { kind: "invalid", secret, message: "no key." } }, "SecretInvalid", "no key."],
    ["a refused App", { access: { kind: "refused", secret, message: "no App" } }, "Unauthorized", "no App"],
    [
      "an App while GitHub is down",
      { access: { kind: "unavailable", secret, message: "GitHub is down" } },
      "Unavailable",
      "because GitHub is down; it is reported when the forge responds",
    ],
    [
      "a token without permission",
      { access, answer: { kind: "failed", error: "unauthorized", message: "it says no" } },
      "Unauthorized",
      "because it says no; give the token",
    ],
    [
      "a missing commit",
      { access, answer: { kind: "failed", error: "notFound", message: "m" } },
      "NotFound",
      "report.url",
    ],
    ["bad content", { access, answer: { kind: "failed", error: "invalid", message: "m" } }, "Rejected", "report.url"],
    ["a limit", { access, answer: { kind: "failed", error: "rateLimited", message: "m" } }, "RateLimited", "later"],
    [
      "an outage",
      { access, answer: { kind: "failed", error: "unavailable", message: "m" } },
      "Unavailable",
      "responds",
    ],
  ];
  test.each(problems)("shows %s, keeps what was reported, and reports it once", (...row) => {
    const [, changes, problem, message] = row;
    const view = viewOf({ ...changes, update: withReport({ digest: "d", state: "pending", commentID: "9" }) });
    expect(reportOf(view)).toMatchObject({ digest: "d", state: "pending", commentID: "9", problem });
    expect(reportOf(view)?.message).toContain(message);
    expect(reportEvents(view, planReport(view))).toMatchObject([{ type: "Warning", reason: "ReportFailed" }]);
    const again = { ...view, update: withReport({ ...reportOf(view) }) };
    expect(reportEvents(again, planReport(again))).toEqual([]);
  });

  test("shows the end of a problem", () => {
    const view = answered(
      { kind: "delivered", digest },
      { update: withReport({ problem: "Unavailable", message: "m" }) },
    );
    expect(reportOf(view)).not.toContainKey("problem");
    expect(reportEvents(view, planReport(view))).toMatchObject([{ type: "Normal", reason: "ReportResumed" }]);
  });
});

const waits: readonly (readonly [string, Partial<ReportView>, number | undefined])[] = [
  ["the end of its own pause", { memory: { failures: 1, retryAt: now + 7 } }, now + 7],
  ["the end of the forge's rest", { subject: { ...subject, forge: { isBusy: false, restUntil: now + 8 } } }, now + 8],
  ["the requests of others", { subject: { ...subject, forge: { isBusy: true, restUntil: 0 } } }, now + 60_000],
  ["nothing when everything is reported", { update: withReport({ digest, state: "running" }) }, undefined],
  [
    "nothing after a rest that is over",
    { subject: { ...subject, forge: { isBusy: false, restUntil: now } } },
    undefined,
  ],
];
test.each(waits)("a report waits for %s", (_, changes, expected) => {
  const plan = planReport(viewOf({ access, ...changes }));
  expect(plan.requeueAt).toBe(expected as number);
  expect("requeueAt" in plan).toBe(expected !== undefined);
});

test.each([
  ["that runs", preview(running), 7],
  ["without pull request", preview(succeeded), undefined],
  ["that is an update", ended, 7],
])("there is no comment for an operation %s", (_, update, pullRequest) => {
  const about = { ...subject, ...(pullRequest !== undefined && { pullRequest }) };
  const view = viewOf({ access, update, subject: about, details: { outputs: [] } });
  expect(planReport(view).steps).toMatchObject([{ kind: "send" }]);
  expect(JSON.stringify(planReport(view).steps)).not.toContain("comment");
});

describe("pauses", () => {
  const second = 1000;
  const rows: readonly (readonly [string, Partial<Extract<Answer, { kind: "failed" }>>, number | undefined, number])[] =
    [
      ["begin with 5 s", {}, undefined, 5 * second],
      ["are doubled", {}, 1, 10 * second],
      ["are doubled again", {}, 2, 20 * second],
      ["grow up to 10 minutes", {}, 20, 600 * second],
      ["are longer if somebody has to solve the problem", { error: "unauthorized" }, undefined, 30 * second],
      ["grow up to an hour then", { error: "unauthorized" }, 20, 3600 * second],
      ["respect Retry-After", { error: "rateLimited", retryAfterMs: 900 * second }, undefined, 900 * second],
      ["are not shorter than usual because of Retry-After", { retryAfterMs: 1 }, undefined, 5 * second],
    ];
  test.each(rows)("%s", (...row) => {
    const [, answer, failures, expected] = row;
    const memory = failures === undefined ? {} : { memory: { failures, retryAt: 0 } };
    const view = answered({ kind: "failed", error: "unavailable", message: "", ...answer }, memory);
    expect(planReport(view).requeueAt).toBe(now + jittered(expected, "update-uid"));
  });
});

test("the digest depends on the state, the link and the settings", () => {
  const other = { ...subject, settings: { ...subject.settings, consoleURL: "https://console.example" } };
  const digests = [
    reportDigest(updateOf(), subject),
    reportDigest(updateOf(running), subject),
    reportDigest(updateOf(succeeded), subject),
    reportDigest(updateOf(failed), subject),
    reportDigest(updateOf(succeeded), other),
    reportDigest(updateOf(succeeded), { ...subject, commit: "f".repeat(40) }),
  ];
  expect(new Set(digests).size).toBe(digests.length);
});
