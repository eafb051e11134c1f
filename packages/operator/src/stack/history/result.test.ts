import { describe, expect, test } from "bun:test";

import { outputsSecret, outputVersions } from "../desired/outputs-secret.ts";
import { destroyDue } from "../rules/due.ts";
import { ago, anUpdate, aTrigger, failed, now, stackOf, succeeded, viewOf, type Setting } from "../testing/views.ts";
import type { UpdateFacts } from "../view.ts";
import { resultToRecord } from "./result.ts";

describe("the result of an update", () => {
  test("has a time at least a second after the previous one", () => {
    const view = viewOf({ last: succeeded({ lastResyncTime: ago(10) }) });
    const end = (endedAt: number) =>
      resultToRecord(view, anUpdate({ state: "succeeded", endedAt })).lastUpdate.lastResyncTime;
    expect(end(now)).toBe(ago(0));
    expect(end(now - 10_000)).toBe(ago(9));
    expect(end(now - 3_600_000)).toBe(ago(9));
  });

  test("has the operator's time if the clock of its node is ahead, so that the next update waits as long as after others", () => {
    const ahead = anUpdate({ state: "failed", endedAt: now + 660_000 });
    const { lastUpdate } = resultToRecord(viewOf({ last: failed({ lastResyncTime: ago(60) }) }), ahead);
    expect(lastUpdate.lastResyncTime).toBe(ago(0));
  });

  test("has its own time if the previous one was recorded by a clock which was hours ahead", () => {
    const view = viewOf({ last: failed({ lastResyncTime: ago(-36_000) }) });
    expect(resultToRecord(view, anUpdate({ state: "failed", endedAt: now })).lastUpdate.lastResyncTime).toBe(ago(0));
  });

  test("keeps the last successful commit after a failure", () => {
    const view = viewOf({ last: succeeded({ lastSuccessfulCommit: "good" }) });
    const { lastUpdate } = resultToRecord(view, anUpdate({ state: "failed", endedAt: now, message: "no" }));
    expect(lastUpdate).toMatchObject({
      state: "failed",
      lastSuccessfulCommit: "good",
      lastAttemptedCommit: "1",
      failures: 1,
    });
  });

  test("keeps the digest of the revision, also for a destroy", () => {
    const { lastUpdate } = resultToRecord(
      viewOf({}),
      anUpdate({ state: "succeeded", trigger: aTrigger({ revision: "v1", digest: "sha256:a" }) }),
    );
    expect(lastUpdate).toMatchObject({ lastAttemptedCommit: "v1", lastSuccessfulCommit: "v1", digest: "sha256:a" });
    const view = viewOf({ deleting: true, last: lastUpdate });
    const due = view.spec.ok ? destroyDue(view, view.spec.value) : undefined;
    expect(due).toMatchObject({ kind: "now", trigger: { revision: "v1", digest: "sha256:a" } });
  });

  test("counts failures of the same content only", () => {
    const failures = (digest: string): number | undefined => {
      const last = failed({ failures: 2, lastAttemptedCommit: "v1", digest: "sha256:a" });
      const update = anUpdate({ state: "failed", trigger: aTrigger({ revision: "v1", digest }) });
      return resultToRecord(viewOf({ last }), update).lastUpdate.failures;
    };
    expect([failures("sha256:a"), failures("sha256:b")]).toEqual([3, 1]);
  });

  test("masks secret outputs, and omits long ones", () => {
    const values = [
      { name: "a", secret: true, value: "canary" },
      { name: "b", secret: false, value: [1] },
      { name: "c", secret: false, value: "x".repeat(20_000) },
    ];
    const view = viewOf({ outputs: { kind: "read", values, former: { data: {}, versions: {} } } });
    const { outputs } = resultToRecord(view, anUpdate({ state: "succeeded", endedAt: now }));
    expect(outputs).toEqual({ a: "[secret]", b: [1], c: "[too long]" });
  });

  test("changes only the versions of outputs that changed", () => {
    const stack = stackOf({});
    const first = outputsSecret(stack, "u1", {
      kind: "read",
      values: [
        { name: "a", secret: false, value: 1 },
        { name: "b", secret: true, value: "x" },
      ],
      former: { data: {}, versions: {} },
    });
    const second = outputsSecret(stack, "u2", {
      kind: "read",
      values: [
        { name: "a", secret: false, value: 2 },
        { name: "b", secret: true, value: "x" },
        { name: "odd name", secret: false, value: {} },
      ],
      former: { data: first.data ?? {}, versions: outputVersions(first) },
    });
    expect(Object.values(outputVersions(second)).toSorted()).toEqual(["u1", "u2", "u2"]);
    expect(outputVersions(second)).toMatchObject({ a: "u2", b: "u1" });
  });
});

describe("whether anything was deployed", () => {
  const after = (setting: Setting, update: Partial<UpdateFacts>) =>
    resultToRecord(viewOf(setting), anUpdate({ state: "succeeded", endedAt: now, ...update })).deployed;
  const last = succeeded({ type: "preview" });

  test("previews deploy nothing", () => {
    expect(after({}, { type: "preview" })).toBe(false);
    expect(after({ last, status: { deployed: false } }, { type: "preview" })).toBe(false);
  });

  test("an update deploys, even if it failed, and a later preview does not change that", () => {
    expect(after({ last, status: { deployed: false } }, {})).toBe(true);
    expect(after({}, { state: "failed" })).toBe(true);
    expect(after({ last: succeeded(), status: { deployed: true } }, { type: "preview" })).toBe(true);
  });

  test("a withdrawn update deploys nothing", () => {
    const withdrawn = { state: "failed", failure: "withdrawn" } as const;
    expect(after({ last, status: { deployed: false } }, withdrawn)).toBe(false);
    expect(after({}, withdrawn)).toBeUndefined();
  });

  test("is unknown if the Go operator ran updates before", () => {
    expect(after({ last }, { type: "preview" })).toBeUndefined();
  });
});
