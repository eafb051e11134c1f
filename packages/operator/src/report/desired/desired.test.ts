import { describe, expect, test } from "bun:test";
import type { Stack, UpdateStatus } from "@pko/api";
import { forgeTypes, maxCommentLength, type ForgeType } from "@pko/forge";
import { emptyContent, type RecordContent, type RunEvent } from "@pko/records";

import { ended, failed, running, stack, subject, succeeded, updateOf, withdrawn } from "../testing/views.ts";
import type { Details, PlanFate, Subject } from "../view.ts";
import { commentBody } from "./comment.ts";
import { commitStatus, isCommentSent, markerOf } from "./commit-status.ts";
import { code, codeBlock, link } from "./markdown.ts";

const previewSpec = { type: "preview", stackName: "acme/web/prod" };
const planSpec = { ...previewSpec, savePlan: true };
const plan = { digest: "d", secretNames: [], changes: true, destructive: false, unknownInputs: 0, summary: "" };

const statuses: readonly (readonly [string, UpdateStatus, object, string, string])[] = [
  ["has not started", {}, {}, "pending", "waiting to run"],
  ["runs", running, {}, "running", "the update is running"],
  ["is a preview that runs", running, previewSpec, "running", "the preview is running"],
  ["succeeded", succeeded, {}, "success", "1 replaced, 3 deleted, 2 created, 4 unchanged"],
  ["previewed", succeeded, previewSpec, "success", "1 to replace, 3 to delete, 2 to create, 4 unchanged"],
  ["changed nothing", { ...succeeded, changes: {} }, {}, "success", "no changes"],
  [
    "made a plan without changes",
    { ...succeeded, plan: { ...plan, changes: false }, changes: {} },
    planSpec,
    "success",
    "no changes",
  ],
  [
    "failed",
    { ...failed, errorClass: "policyViolation" },
    {},
    "failure",
    "the update failed: a mandatory policy is violated",
  ],
  ["failed for an unknown reason", { ...failed, errorClass: "other" }, previewSpec, "failure", "the preview failed"],
  [
    "failed in the middle",
    { ...failed, errorClass: "programError", changes: { create: 1 } },
    {},
    "failure",
    "the update failed: the program failed; 1 created",
  ],
  ["was withdrawn", withdrawn, {}, "failure", "the update failed: it was cancelled"],
];
test.each(statuses)("the status of an Update that %s", (...row) => {
  const [, status, spec, state, description] = row;
  const update = updateOf(status, { spec: { type: "up", ...spec } });
  expect(commitStatus({ update, subject })).toEqual({ context: "pulumi/apps/web", state, description } as never);
});

test.each([
  ["waits", {}, "error", "no result: its Stack no longer previews pull requests"],
  ["runs", running, "error", "no result: its Stack no longer previews pull requests"],
  ["was withdrawn", withdrawn, "error", "no result: its Stack no longer previews pull requests"],
  ["was cancelled", ended("Canceled"), "error", "no result: its Stack no longer previews pull requests"],
  ["was interrupted", ended("Aborted"), "error", "no result: its Stack no longer previews pull requests"],
  ["may not have stopped", ended("Unknown"), "error", "no result: its Stack no longer previews pull requests"],
  ["failed", ended("UpdateFailed"), "failure", "the preview failed"],
  ["succeeded", succeeded, "success", "1 to replace, 3 to delete, 2 to create, 4 unchanged"],
])("the status of an abandoned preview that %s", (...row) => {
  const [, status, state, description] = row;
  const update = updateOf(status, { spec: previewSpec });
  const abandoned = { ...subject, pullRequest: 7, isAbandoned: true };
  expect(commitStatus({ update, subject: abandoned })).toMatchObject({ state, description });
  // The comment shows the last preview with a result.
  expect(isCommentSent(update, abandoned)).toBe(state !== "error");
});

const moved = { ...stack, spec: { ...stack.spec, commit: "f".repeat(40) } };
const closed = { ...stack, metadata: { ...stack.metadata, deletionTimestamp: "2030-01-01T00:00:00Z" } };
const ends: readonly (readonly [string, UpdateStatus, Stack, string, string])[] = [
  ["was cancelled after a push", ended("Canceled"), moved, "error", "no result: the pull request has a new head"],
  ["was withdrawn after a push", withdrawn, moved, "error", "no result: the pull request has a new head"],
  [
    "was cancelled when it was closed",
    ended("Canceled"),
    closed,
    "error",
    "no result: the pull request was closed or is no longer selected",
  ],
  ["was cancelled by a person", ended("Canceled"), stack, "error", "no result: the preview was cancelled"],
  ["was interrupted", ended("Aborted"), stack, "error", "no result: the preview was interrupted"],
  ["may not have stopped", ended("Unknown"), stack, "error", "no result: the preview was interrupted"],
  ["failed", ended("UpdateFailed"), closed, "failure", "the preview failed"],
  ["succeeded", succeeded, moved, "success", "1 to replace, 3 to delete, 2 to create, 4 unchanged"],
];
test.each(ends)("the status of a pull request's preview that %s", (...row) => {
  const [, status, child, state, description] = row;
  const update = updateOf(status, { spec: previewSpec });
  const previewed = { ...subject, stack: child, pullRequest: 7 };
  expect(commitStatus({ update, subject: previewed })).toMatchObject({ state, description });
  expect(isCommentSent(update, previewed)).toBe(state !== "error");
});

const fates: readonly (readonly [string, PlanFate, string, string])[] = [
  ["is open", { kind: "open" }, "pending", "1 to replace, 3 to delete, 2 to create, 4 unchanged; not applied yet"],
  ["was rejected", { kind: "rejected" }, "failure", "the plan was rejected"],
  ["is superseded", { kind: "superseded" }, "error", "the plan was superseded before it was applied"],
  [
    "was applied for a later commit",
    { kind: "applied", by: updateOf(succeeded) },
    "success",
    "1 replaced, 3 deleted, 2 created, 4 unchanged",
  ],
  [
    "could not be applied",
    { kind: "applied", by: updateOf({ ...failed, errorClass: "planStale" }) },
    "failure",
    "the update failed: the state has changed since the plan",
  ],
];
test.each(fates)("the status of an Update whose plan %s", (...row) => {
  const [, fate, state, description] = row;
  const update = updateOf({ ...succeeded, plan }, { spec: planSpec });
  expect(commitStatus({ update, subject: { ...subject, plan: fate } })).toMatchObject({ state, description });
});

test("the status links to the console, otherwise to Pulumi Cloud", () => {
  const permalink = "https://app.pulumi.com/acme/web/prod/updates/1";
  const update = updateOf({ ...succeeded, permalink });
  expect(commitStatus({ update, subject }).url).toBe(permalink);
  const settings = { ...subject.settings, consoleURL: "https://console.example/" };
  expect(commitStatus({ update, subject: { ...subject, settings } }).url).toBe(
    "https://console.example/runs/apps/web-1",
  );
  expect(commitStatus({ update: updateOf({ permalink: "javascript:alert(1)" }), subject }).url).toBeUndefined();
});

describe("the child of a Stack for a pull request", () => {
  const owner = { apiVersion: "pulumi.com/v1", kind: "Stack", name: "web", uid: "stack-uid", controller: true };
  const childOf = (uid: string): Subject => ({
    ...subject,
    pullRequest: 7,
    stack: { ...stack, metadata: { name: "web-pr-7", namespace: "apps", uid, ownerReferences: [owner] } },
  });

  test("has the same context for all pull requests, so that a forge can require it", () => {
    expect(commitStatus({ update: updateOf(), subject: childOf("a") }).context).toBe("pulumi/apps/web/preview");
  });

  test("has the same marker when it is created again, which does not reveal a UID", () => {
    expect(markerOf(childOf("a"))).toBe(markerOf(childOf("b")));
    expect(markerOf(childOf("a"))).not.toBe(markerOf({ ...childOf("a"), pullRequest: 8 }));
    expect(markerOf(childOf("a"))).toMatch(/^pulumi:[0-9a-f]{32}$/);
  });
});

const urn = (type: string, name: string): string => `urn:pulumi:prod::web::${type}::${name}`;
const resource = (op: string, name: string, more: Partial<Extract<RunEvent, { kind: "resource" }>> = {}): RunEvent => ({
  kind: "resource",
  phase: "finished",
  op,
  urn: urn("aws:s3:Bucket", name),
  resourceType: "aws:s3:Bucket",
  ...more,
});
const recordOf = (events: readonly RunEvent[]): RecordContent => ({
  ...emptyContent,
  events: events.map((event, index) => ({ seq: index + 1, time: "2030-01-01T00:00:00Z", event })),
});
const bodyOf = (details: Details, status = succeeded, type: ForgeType = "GitHub"): string =>
  commentBody({
    update: updateOf(status, { spec: previewSpec }),
    subject: { ...subject, pullRequest: 7, target: { ...subject.target, type } },
    details,
  });

describe("the comment", () => {
  test("shows replacements and deletions first, then violations, other changes and outputs", () => {
    const record = recordOf([
      resource("create", "new"),
      resource("create-replacement", "old"),
      resource("replace", "old", { replaceKeys: ["bucket"] }),
      resource("update", "logs", { changes: [{ path: "acl", kind: "update", old: '"a"', new: '"b"' }] }),
      resource("same", "quiet"),
      resource("delete", "gone", { phase: "started" }),
      resource("delete", "gone"),
      {
        kind: "policy",
        level: "mandatory",
        policy: "base/no-public",
        message: "must not be public",
        urn: urn("t", "new"),
      },
    ]);
    const outputs = [{ name: "url", json: '"https://web.example"' }, { name: "password" }];
    expect(bodyOf({ record, outputs })).toBe(`### Pulumi preview of \`acme/web/prod\`

**1 to replace, 3 to delete, 2 to create, 4 unchanged** · commit \`0123456789\`

**Replacements and deletions**

- replace \`aws:s3:Bucket\` \`old\`: \`bucket\`
- delete \`aws:s3:Bucket\` \`gone\`

**Policy violations**

- \`mandatory\` \`base/no-public\` for \`new\`: \`must not be public\`

**Other changes**

- create \`aws:s3:Bucket\` \`new\`
- update \`aws:s3:Bucket\` \`logs\`: \`acl\`

**Outputs**

- \`url\`: \`"https://web.example"\`
- \`password\`: secret
`);
  });

  test("shows the error, without outputs", () => {
    const body = bodyOf({ outputs: [{ name: "url", json: "1" }] }, { ...failed, message: "boom\n```\n@acme/all" });
    expect(body).toContain("**the preview failed**");
    expect(body).toContain("````text\nboom\n```\n@acme/all\n````");
    expect(body).not.toContain("Outputs");
    expect(body).toContain("record of the run is not available");
  });

  test("shows no values of properties", () => {
    const changes = [{ path: "password", kind: "update", old: '"canary-old"', new: '"canary-new"' }];
    const body = bodyOf({ record: recordOf([resource("update", "db", { changes })]), outputs: [] });
    expect(body).toContain("`password`");
    expect(body).not.toContain("canary");
  });

  test.each(forgeTypes)("fits at %s, however much changes", (type) => {
    const name = "n".repeat(300);
    const events = Array.from({ length: 5000 }, (_, index) => resource("delete", `${name}${index}`));
    const outputs = Array.from({ length: 500 }, (_, index) => ({ name: `o${index}`, json: "x".repeat(5000) }));
    const body = bodyOf({ record: recordOf(events), outputs }, succeeded, type);
    expect(body.length).toBeLessThanOrEqual(maxCommentLength[type]);
    expect(body.length).toBeGreaterThan(maxCommentLength[type] * 0.9);
    expect(body).toMatch(/- … and \d+ more\n/);
  });

  test("counts what does not fit of every section", () => {
    const changed = (op: string, count: number): RunEvent[] =>
      Array.from({ length: count }, (_, index) => resource(op, `${op}${"n".repeat(200)}${index}`));
    const violation: RunEvent = { kind: "policy", level: "mandatory", policy: "p", message: "m".repeat(400) };
    const record = recordOf([...changed("delete", 5000), violation, ...changed("create", 3)]);
    const body = bodyOf({ record, outputs: [{ name: "url", json: '"x"' }] });
    expect(body.length).toBeLessThanOrEqual(maxCommentLength.GitHub);
    const deleted = body.match(/^- delete /gm)?.length ?? 0;
    expect(deleted).toBeGreaterThan(100);
    expect(body).toContain(`\n- … and ${5000 - deleted} more\n\n**Policy violations**\n\n`);
    const shown = (pattern: RegExp): number => body.match(pattern)?.length ?? 0;
    const omitted = [...body.matchAll(/^- … and (\d+) more$/gm)].map(([, count]) => Number(count));
    const listed = deleted + shown(/^- `mandatory` /gm) + shown(/^- create /gm) + shown(/^- `url`/gm);
    expect(listed + omitted.reduce((sum, count) => sum + count, 0)).toBe(5005);
  });

  test("mentions that the record is incomplete", () => {
    const record = { ...emptyContent, omitted: { events: 12, resources: 0, values: 0 } };
    expect(bodyOf({ record, outputs: [] })).toContain("omits 12 events");
  });
});

describe("text of others", () => {
  test.each([
    ["is code", "a", "`a`"],
    ["cannot end the code", "a`b", "``a`b``"],
    ["may begin with a backtick", "`a", "`` `a ``"],
    ["stays on its line", "a\n# b\r\n\tc", "`a # b c`"],
    ["has no direction marks", "a\u202Eb\u200B", "`ab`"],
    ["may be empty", "", "` `"],
  ])("%s", (_, text, expected) => {
    expect(code(text)).toBe(expected);
  });

  test("cannot end a block", () => {
    expect(codeBlock("a\n````\nb\n")).toBe("`````text\na\n````\nb\n`````");
  });

  test("cannot end a link", () => {
    expect(link("details", "https://a.example/x)(y z")).toBe("[details](https://a.example/x%29%28y%20z)");
  });
});
