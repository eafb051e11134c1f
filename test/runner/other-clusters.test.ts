/** On a cluster of the user, what needs the local cluster is skipped with a reason, and everything else runs. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { listedFiles, skipReason, type OtherCluster } from "./other-clusters.ts";
import { jobsIn, repositoryRoot, suiteNames, type Job } from "./suites.ts";

const all = (await Promise.all(suiteNames.map(jobsIn))).flat();
const remote: OtherCluster = { machineAddress: undefined, workspaceImage: undefined };
const reachable: OtherCluster = { ...remote, machineAddress: "192.0.2.1" };
const withImage: OtherCluster = { ...reachable, workspaceImage: "registry.example.com/workspace:1" };

const runnable = (jobs: readonly Job[], cluster: OtherCluster): string[] =>
  jobs.filter((job) => skipReason(job, cluster) === undefined).map(({ name }) => name);

test("the tests of the local cluster itself are skipped, and all that need no cluster run", () => {
  const names = runnable(all, remote);
  expect(names).not.toContain("cluster");
  for (const { name, suite } of all) if (suite === "unit" || suite === "integration") expect(names).toContain(name);
});

test("without an address of this machine, only the files whose operator runs in the cluster run", () => {
  const files = all.filter(({ suite }) => suite === "e2e");
  expect(runnable(files, remote).toSorted()).toEqual([
    "test/e2e/demo/demo.test.ts",
    "test/e2e/install/deploy.test.ts",
    "test/e2e/install/quickstart.test.ts",
    "test/e2e/install/reinstall.test.ts",
  ]);
});

test("with an address of this machine, a file runs if it uses nothing of the local cluster outside of a localTest", () => {
  const files = all.filter(({ suite }) => suite === "e2e");
  const usesLocal = (name: string): boolean => {
    const text = readFileSync(join(repositoryRoot, name), "utf8");
    return (
      /startSecondNode|publish(?!Operator|ed)[A-Z]\w*\(|startSshServer\(|context local\b/.test(text) &&
      !text.includes("localTest(")
    );
  };
  for (const name of runnable(files, withImage))
    expect({ name, usesLocal: usesLocal(name) }).toEqual({ name, usesLocal: false });
});

test("without a workspace image that contains the SDK, the files with programs in JavaScript are skipped, and no others", () => {
  const files = all.filter(({ suite }) => suite === "e2e");
  const without = new Set(runnable(files, reachable));
  const skipped = runnable(files, withImage).filter((name) => !without.has(name));
  const usesJavaScript = (name: string): boolean =>
    /\b(javascript|files|slow|configMap|echo)Project\b/.test(readFileSync(join(repositoryRoot, name), "utf8"));
  expect(skipped.toSorted()).toEqual(runnable(files, withImage).filter(usesJavaScript).toSorted());
});

test("every listed file is an end-to-end test", () => {
  const names = new Set(all.filter(({ suite }) => suite === "e2e").map(({ name }) => name));
  expect(listedFiles.filter((name) => !names.has(name))).toEqual([]);
});
