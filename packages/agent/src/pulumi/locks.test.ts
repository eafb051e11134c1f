import { describe, expect, test } from "bun:test";
import { isAllStale, parseLockReport, type LockJudge } from "./locks.ts";

const start = new Date("2026-01-01T12:00:00Z");
const judge: LockJudge = {
  hostname: "web-workspace-0",
  agentStartedAt: start,
  ownPids: new Set([40]),
  lostRuns: [],
  startOf: () => undefined,
};

function report(...holders: readonly string[]) {
  return reportOf("file:///b/locks/x.json", holders);
}

function reportInBucket(...holders: readonly string[]) {
  return reportOf("s3://states/.pulumi/locks/x.json?region=us-east-1&s3ForcePathStyle=true", holders);
}

function reportOf(url: string, holders: readonly string[]) {
  const lines = holders.map((holder) => `\n  ${url}: created by ${holder}`);
  const text = `error: the stack is currently locked by ${holders.length} lock(s). Either wait…${lines.join("")}`;
  const parsed = parseLockReport(text);
  if (!parsed) throw new Error("not a report");
  return parsed;
}

const before = "2026-01-01T11:59:00Z";
const after = "2026-01-01T12:05:00Z";

describe("a lock is stale", () => {
  test("when this pod took it before the agent began", () => {
    expect(isAllStale(report(`pulumi@web-workspace-0 (pid 7) at ${before}`), judge)).toBe(true);
  });

  test("when a run of this agent took it and is dead", () => {
    expect(isAllStale(report(`pulumi@web-workspace-0 (pid 40) at ${after}`), judge)).toBe(true);
  });

  test("in a bucket, when a run of this workspace that was lost held it", () => {
    const lost = { ...judge, lostRuns: [{ from: "2026-01-01T11:58:50Z", to: "2026-01-01T11:59:30Z" }] };
    expect(isAllStale(reportInBucket(`pulumi@web-workspace-0 (pid 7) at ${before}`), lost)).toBe(true);
    expect(isAllStale(reportInBucket(`pulumi@web-workspace-0 (pid 40) at ${after}`), judge)).toBe(true);
  });

  test("though its number is another process's by now", () => {
    const reused = { ...judge, startOf: () => new Date("2026-01-01T12:10:00Z") };
    expect(isAllStale(report(`pulumi@web-workspace-0 (pid 40) at ${after}`), reused)).toBe(true);
  });
});

describe("a lock is left alone", () => {
  test("when another host holds it", () => {
    expect(isAllStale(report(`me@laptop (pid 7) at ${before}`), judge)).toBe(false);
    expect(isAllStale(report(`pulumi@web-workspace-01 (pid 7) at ${before}`), judge)).toBe(false);
  });

  test("when its process is alive, as that of someone in the pod's shell", () => {
    const alive = { ...judge, startOf: () => new Date("2026-01-01T11:58:00Z") };
    expect(isAllStale(report(`pulumi@web-workspace-0 (pid 7) at ${before}`), alive)).toBe(false);
  });

  test("when this pod took it since, but no run of this agent", () => {
    expect(isAllStale(report(`pulumi@web-workspace-0 (pid 7) at ${after}`), judge)).toBe(false);
  });

  test("in a bucket, when a pod of the same name in another cluster may hold it", () => {
    const lock = reportInBucket(`pulumi@web-workspace-0 (pid 7) at ${before}`);
    expect(isAllStale(lock, judge)).toBe(false);
    const earlier = { ...judge, lostRuns: [{ from: "2026-01-01T11:00:00Z", to: "2026-01-01T11:58:00Z" }] };
    expect(isAllStale(lock, earlier)).toBe(false);
  });

  test("when only one of two is ours", () => {
    const both = report(`pulumi@web-workspace-0 (pid 7) at ${before}`, `me@laptop (pid 9) at ${before}`);
    expect(isAllStale(both, judge)).toBe(false);
  });

  test("when the report cannot be read whole", () => {
    const cut = parseLockReport(
      `the stack is currently locked by 2 lock(s).\n  x: created by pulumi@web-workspace-0 (pid 7) at ${before}`,
    );
    expect(cut && isAllStale(cut, judge)).toBe(false);
    expect(isAllStale(report("pulumi@web-workspace-0 (pid 7) at yesterday"), judge)).toBe(false);
    expect(parseLockReport("error: something else")).toBeUndefined();
  });
});
