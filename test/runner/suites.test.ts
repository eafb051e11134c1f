import { describe, expect, test } from "bun:test";
import { dirname, join } from "node:path";

import { jobFor, jobsIn, repositoryRoot, suiteNames, suites } from "./suites.ts";

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

describe("a single file has a job", () => {
  const file = "test/runner/suites.test.ts";

  test.each([file, `./${file}`, "test/docs/../runner/suites.test.ts", join(repositoryRoot, file)])(
    "%s",
    async (path) => {
      expect(await jobFor(path)).toMatchObject({ name: file, files: [file], suite: "unit" });
    },
  );

  test.each(["test/runner/absent.test.ts", "test/runner/suites.ts", "test/runner"])("but not %s", async (path) => {
    expect(await jobFor(path)).toBeUndefined();
  });
});
