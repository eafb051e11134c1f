import { describe, expect, test } from "bun:test";

import type { SkippedCommit } from "@pko/api";

import type { SourceView } from "../../sources/source-view.ts";
import type { WorkspaceOrigin } from "../desired/workspace.ts";
import { neededComparison } from "../history/skipped-commit.ts";
import { stackStatus } from "../status.ts";
import {
  ago,
  anUpdate,
  aTrigger,
  cases,
  creating,
  failed,
  git,
  messageFor,
  resync,
  stackOf,
  succeeded,
  viewOf,
} from "../testing/views.ts";
import { planStack } from "./index.ts";

const [first, second, third] = ["a", "b", "c"].map((letter) => letter.repeat(40)) as [string, string, string];
const spec = { ...git, pathFilters: ["infra/**"] };
const last = succeeded({ lastAttemptedCommit: first, lastSuccessfulCommit: first });

const at = (revision: string, paths?: readonly string[]): Extract<SourceView, { kind: "ready" }> => ({
  kind: "ready",
  revision,
  aliases: [],
  spec: { git: { url: git.projectRepo, ref: revision } },
  ...(paths && { changes: { since: first, paths } }),
});
const applying = "applyWorkspace: StackProcessing";
const skipped: SkippedCommit = { commit: second, since: first };

cases("a Stack with path filters", [
  [
    "records a commit that changes nothing that they select",
    { spec, last, source: at(second, []) },
    "recordSkippedCommit: Ready",
  ],
  [
    "runs for a commit that changes a selected file",
    { spec, last, source: at(second, ["infra/a"]) },
    creating("up for revision"),
  ],
  ["runs if it is not known what the commit changes", { spec, last, source: at(second) }, creating("up for revision")],
  ["records a commit once", { spec, last, status: { skippedCommit: skipped }, source: at(second, []) }, "none: Ready"],
  [
    "records the next one",
    { spec, last, status: { skippedCommit: skipped }, source: at(third, []) },
    "recordSkippedCommit: Ready",
  ],
  [
    "runs after a failure",
    { spec, last: failed({ lastAttemptedCommit: second, lastSuccessfulCommit: first }), source: at(third, []) },
    creating("up for revision"),
  ],
  [
    "runs if the comparison is with another commit than the last successful one",
    { spec, last: succeeded({ lastAttemptedCommit: third, lastSuccessfulCommit: third }), source: at(second, []) },
    creating("up for revision"),
  ],
  ["runs for a changed spec", { spec, last, generation: 2, source: at(second, []) }, creating("up for generation")],
  ["runs for a request", { spec, last, request: "now", source: at(second, []) }, creating("up for request")],
  [
    "runs for a resync, with the skipped commit",
    { spec: { ...spec, ...resync(60) }, last, source: at(second, []) },
    creating("up for resync"),
  ],
  [
    "waits for a running update",
    { spec, last, source: at(second, []), updates: [anUpdate({ trigger: aTrigger({ revision: first }) })] },
    "none: StackProcessing",
  ],
]);

/** Of a commit that the operator cannot compare. */
const uncompared = (revision: string, commit = first): SourceView => ({
  ...at(revision),
  uncompared: { since: first, compareWith: { commit, pathFilters: ["infra/**"] } },
});
const compared = (revision: string, compareWith = { commit: first, pathFilters: ["infra/**"] }): WorkspaceOrigin => ({
  git: { url: git.projectRepo, ref: revision, compareWith },
});
const unchanged = { workspace: { unchangedSince: first } };

cases("a Stack with path filters whose commits only the agent can compare", [
  ["has the agent compare a new commit", { spec, last, source: uncompared(second), origin: compared(first) }, applying],
  [
    "waits until the agent has done so",
    { spec, last, source: uncompared(second), origin: compared(second), workspace: "preparing" },
    "none: StackProcessing",
  ],
  [
    "records a commit in which the agent finds no change",
    { spec, last, source: uncompared(second), origin: compared(second), ...unchanged },
    "recordSkippedCommit: Ready",
  ],
  [
    "runs if the agent finds a change, or cannot compare the commits",
    { spec, last, source: uncompared(second), origin: compared(second) },
    creating("up for revision"),
  ],
  [
    "does not rely on the comparison of another commit",
    { spec, last, source: uncompared(third), origin: compared(second), ...unchanged },
    applying,
  ],
  [
    "does not rely on a comparison with another commit",
    { spec, last, source: uncompared(third, second), origin: compared(third), ...unchanged },
    applying,
  ],
  [
    "does not rely on a comparison with other filters",
    {
      spec,
      last,
      source: uncompared(second),
      origin: compared(second, { commit: first, pathFilters: ["other/**"] }),
      ...unchanged,
    },
    applying,
  ],
  [
    "records the commit before the Workspace is deleted, with which the result would be lost",
    {
      spec: { ...spec, workspaceReclaimPolicy: "Delete" },
      last,
      source: uncompared(second),
      origin: compared(second),
      ...unchanged,
    },
    "recordSkippedCommit: Ready",
  ],
  [
    "records the commit before a drift check prepares the Workspace",
    {
      spec: { ...spec, driftDetection: { intervalSeconds: 60 } },
      last,
      source: uncompared(second),
      origin: compared(second),
      ...unchanged,
    },
    "recordSkippedCommit: Ready",
  ],
  [
    "records the commit while outputs are pending, and reports nothing else",
    {
      spec,
      last: { ...last, outputsPending: true },
      source: uncompared(second),
      origin: compared(second),
      ...unchanged,
    },
    "recordSkippedCommit: unchanged",
  ],
  [
    "records the commit although a resync is due, which would otherwise compare it again and again",
    {
      spec: { ...spec, ...resync(600) },
      last: { ...last, lastResyncTime: ago(601) },
      source: uncompared(second),
      origin: compared(second),
      ...unchanged,
    },
    "recordSkippedCommit: unchanged",
  ],
  [
    "runs the resync once the commit is recorded, and compares nothing",
    {
      spec: { ...spec, ...resync(600) },
      last: { ...last, lastResyncTime: ago(601) },
      source: at(second, []),
      origin: at(second).spec,
      status: { skippedCommit: skipped },
    },
    creating("up for resync"),
  ],
  [
    "runs for a request, and compares nothing",
    { spec, last, request: "now", source: uncompared(second), origin: at(second).spec },
    creating("up for request"),
  ],
]);

test("the message names the commit, and the one that was compared with it", () => {
  expect(messageFor({ spec, last, source: at(second, []) })).toBe(
    `The last update succeeded. Nothing ran for commit ${second}: since ${first}, no file has changed that pathFilters select.`,
  );
});

describe("the status", () => {
  const statusOf = (setting: Parameters<typeof viewOf>[0]) => stackStatus(viewOf(setting), planStack(viewOf(setting)));

  test("records the skipped commit, and keeps it until an update has ended", () => {
    expect(statusOf({ spec, last, source: at(second, []) }).skippedCommit).toEqual(skipped);
    const later = { spec, last, status: { skippedCommit: skipped }, source: at(third, ["infra/a"]) };
    expect(statusOf(later).skippedCommit).toEqual(skipped);
    const update = anUpdate({ state: "succeeded", trigger: aTrigger({ revision: third }) });
    expect(statusOf({ ...later, updates: [update] }).skippedCommit).toBeUndefined();
  });

  test("records a skipped commit while outputs are pending", () => {
    const pending = { ...last, outputsPending: true };
    const setting = { spec, last: pending, source: uncompared(second), origin: compared(second), ...unchanged };
    expect(statusOf(setting)).toEqual({ ...stackOf(setting).status, skippedCommit: skipped });
  });

  test("forgets the skipped commit when the same commit ran with other filters", () => {
    const update = anUpdate({ state: "succeeded", trigger: aTrigger({ revision: first, generation: 2 }) });
    const changed = { spec, last, generation: 2, status: { skippedCommit: skipped }, updates: [update] };
    const status = statusOf({ ...changed, source: at(first) });
    expect(status.lastUpdate).toMatchObject({ generation: 2, lastSuccessfulCommit: first });
    expect(status.skippedCommit).toBeUndefined();
  });
});

describe("a commit is compared", () => {
  const needed = (setting: Parameters<typeof viewOf>[0], commit: string) => neededComparison(stackOf(setting), commit);

  test("with the last successful one, or the last one that was skipped", () => {
    expect(needed({ spec, last }, second)).toEqual({
      kind: "commits",
      since: first,
      pair: { from: first, to: second },
    });
    const setting = { spec, last, status: { skippedCommit: skipped } };
    expect(needed(setting, third)).toEqual({ kind: "commits", since: first, pair: { from: second, to: third } });
    expect(needed(setting, second)).toEqual({ kind: "known", changes: { since: first, paths: [] } });
  });

  test("not with one that was skipped before another update succeeded", () => {
    const setting = { spec, last, status: { skippedCommit: { commit: second, since: third } } };
    expect(needed(setting, third)).toEqual({ kind: "commits", since: first, pair: { from: first, to: third } });
  });

  test("only if the update would not run anyway", () => {
    const none = { kind: "none" } as const;
    expect(needed({ spec }, second)).toEqual(none);
    expect(needed({ spec, last }, first)).toEqual(none);
    expect(needed({ spec, last, generation: 2 }, second)).toEqual(none);
    expect(needed({ spec, last: failed({ lastSuccessfulCommit: first }) }, second)).toEqual(none);
    expect(needed({ spec, last: succeeded({ lastSuccessfulCommit: "main@sha1:1" }) }, second)).toEqual(none);
  });
});
