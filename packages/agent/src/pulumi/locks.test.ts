import { describe, expect, test } from "bun:test";
import type { RunProcess } from "@pko/records";
import { confirmedProcesses, describeLocks, isAllStale, parseLockReport, showsLock } from "./locks.ts";

const files = "file:///b/locks/x.json";
const bucket = "s3://states/.pulumi/locks/x.json?region=us-east-1&s3ForcePathStyle=true";

function report(...holders: readonly string[]) {
  return reportAt(bucket, ...holders);
}

function reportAt(url: string, ...holders: readonly string[]) {
  const lines = holders.map((holder) => `\n  ${url}: created by ${holder}`);
  const text = `error: the stack is currently locked by ${holders.length} lock(s). Either wait…${lines.join("")}`;
  const parsed = parseLockReport(text);
  if (!parsed) throw new Error("not a report");
  return parsed;
}

/** Started half a second before noon, and seen to hold the lock two seconds later. */
const dead: RunProcess = {
  hostname: "web-workspace-0",
  pid: 40,
  startedAt: "2026-01-01T11:59:59.500Z",
  lockedAt: "2026-01-01T12:00:01.500Z",
};
const acquired = "2026-01-01T12:00:00Z";

describe("a lock is stale", () => {
  const cases: Readonly<Record<string, string>> = {
    "when a dead process of this workspace acquired it": `pulumi@web-workspace-0 (pid 40) at ${acquired}`,
    "in the second in which the process started": "pulumi@web-workspace-0 (pid 40) at 2026-01-01T11:59:59Z",
    "in the second in which the process was first seen with it":
      "pulumi@web-workspace-0 (pid 40) at 2026-01-01T12:00:01Z",
    "when its time is in another time zone": "pulumi@web-workspace-0 (pid 40) at 2026-01-01T13:00:00+01:00",
  };
  for (const [name, holder] of Object.entries(cases)) {
    test(name, () => {
      expect(isAllStale(report(holder), [dead])).toBe(true);
      expect(isAllStale(reportAt(files, holder), [dead])).toBe(true);
    });
  }

  test("when a confirmed run of an earlier pod acquired it", () => {
    const { hostname, pid, startedAt } = dead;
    const lost = { from: startedAt, to: dead.lockedAt, hostname, pid, startedAt };
    expect(isAllStale(report(`pulumi@web-workspace-0 (pid 40) at ${acquired}`), confirmedProcesses([lost]))).toBe(true);
  });
});

describe("a lock is left alone", () => {
  const cases: Readonly<Record<string, string>> = {
    "when another host holds it": `me@laptop (pid 40) at ${acquired}`,
    "when a host with a similar name holds it": `pulumi@web-workspace-01 (pid 40) at ${acquired}`,
    "when another process of that host holds it": `pulumi@web-workspace-0 (pid 41) at ${acquired}`,
    "when it was acquired before the process started": "pulumi@web-workspace-0 (pid 40) at 2026-01-01T11:59:58Z",
    "when it was acquired after the process was first seen with its own":
      "pulumi@web-workspace-0 (pid 40) at 2026-01-01T12:00:02Z",
    "when its time is not valid": "pulumi@web-workspace-0 (pid 40) at yesterday",
  };
  for (const [name, holder] of Object.entries(cases)) {
    test(name, () => {
      expect(isAllStale(report(holder), [dead])).toBe(false);
      // A path on a volume may be shared with another cluster, too.
      expect(isAllStale(reportAt(files, holder), [dead])).toBe(false);
    });
  }

  test("when no run of this workspace is confirmed to have held it", () => {
    const lock = report(`pulumi@web-workspace-0 (pid 40) at ${acquired}`);
    expect(isAllStale(lock, [])).toBe(false);
    const unconfirmed = [{ from: "2026-01-01T11:00:00Z", to: "2026-01-01T13:00:00Z" }];
    expect(isAllStale(lock, confirmedProcesses(unconfirmed))).toBe(false);
  });

  test("when only one of two is ours", () => {
    const both = report(`pulumi@web-workspace-0 (pid 40) at ${acquired}`, `me@laptop (pid 9) at ${acquired}`);
    expect(isAllStale(both, [dead])).toBe(false);
  });

  test("when the report is incomplete", () => {
    const cut = parseLockReport(
      `the stack is currently locked by 2 lock(s).\n  x: created by pulumi@web-workspace-0 (pid 40) at ${acquired}`,
    );
    expect(cut && isAllStale(cut, [dead])).toBe(false);
    expect(parseLockReport("error: something else")).toBeUndefined();
  });
});

test("the headline of an update, refresh or destroy shows that the lock is held", () => {
  for (const line of ["Updating (dev):", "Refreshing (acme/web/dev):", "Destroying (dev):"]) {
    expect(showsLock(`warning: A new version is available.\n${line}\n\n`, "change")).toBe(true);
  }
  for (const text of ["Previewing update (dev):\n", "error: the stack is currently locked by 1 lock(s).", ""]) {
    expect(showsLock(text, "change")).toBe(false);
  }
});

test("the headline of a preview shows the lock of an update with a plan, and a preview alone does not lock", () => {
  const headline = "Previewing update (dev):\n";
  expect(showsLock(headline, "planned")).toBe(true);
  expect(showsLock("", "planned")).toBe(false);
  for (const kind of ["preview", "check"] as const) expect(showsLock(headline, kind)).toBe(false);
});

test("a lock that stays is described with its holder, the reason and the remedy", () => {
  const text = describeLocks(report(`pulumi@other-workspace-0 (pid 7) at ${acquired}`), {
    pod: "web-workspace-0",
    namespace: "team-a",
    stack: "dev",
  });
  expect(text).toContain(`locked by pulumi@other-workspace-0 (pid 7) since ${acquired}, ${bucket}`);
  expect(text).toContain("only if it is sure that a dead run of this workspace acquired it");
  expect(text).toEndWith(
    "`pulumi cancel --yes --stack dev` in the workspace's pod " +
      "(kubectl exec -it web-workspace-0 -n team-a -c pulumi -- bash). The Stack then continues automatically",
  );
});

test("a report of a million characters is read in linear time", () => {
  const text = "the stack is currently locked by 1 lock(s)\n";
  expect(parseLockReport(`${text}${"a".repeat(1_000_000)}`)?.holders).toEqual([]);
  expect(parseLockReport(`${text}x: created by ${"a@".repeat(500_000)}`)?.holders).toEqual([]);
});
