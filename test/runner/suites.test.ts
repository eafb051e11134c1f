import { expect, test } from "bun:test";
import { dirname } from "node:path";

import { jobsIn, suiteNames, suites } from "./suites.ts";

test.each(suiteNames)("each file of the suite %s is in one job", async (suite) => {
  const files = (await jobsIn(suite)).flatMap((job) => job.files);
  expect(files.length).toBeGreaterThan(0);
  expect(new Set(files).size).toBe(files.length);
});

test("folders that are joined share a job", async () => {
  const jobs = await jobsIn("integration");
  const joined = Object.entries(suites.integration.joinedFolders ?? {});
  expect(joined.length).toBeGreaterThan(0);
  for (const [name, folders] of joined) {
    const files = jobs.find((job) => job.name === name)?.files ?? [];
    expect(new Set(files.map((file) => dirname(file)))).toEqual(new Set(folders));
  }
});
