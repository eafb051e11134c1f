/** All parallel jobs are counted. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { runJob } from "./jobs.ts";
import { runPool } from "./pool.ts";

test("the reports of jobs that end at the same time add up", async () => {
  const temporary = mkdtempSync(join(tmpdir(), "pko-jobs-"));
  try {
    const files = ["test/runner/report.test.ts"];
    const jobs = ["one", "two", "three"].map((name) => ({ name, files, suite: "unit", isExclusive: false }) as const);
    const environment = Promise.resolve({ temporary, env: {} });
    const { passed, failed } = await runPool([{ jobs, environment }], { width: 3 }, runJob);
    expect({ passed, failed }).toEqual({ passed: 21, failed: 0 });
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
});
