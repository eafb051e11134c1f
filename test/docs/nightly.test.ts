/** Commands of .github/workflows/nightly.yaml that do more than start make, run with a make that does nothing else. */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { parse } from "yaml";

import { root } from "./pages.ts";

interface Workflow {
  readonly jobs: {
    readonly exhaustive: { readonly strategy: { readonly matrix: { readonly command: readonly string[] } } };
    readonly bench: { readonly with: { readonly command: string; readonly artifact: string } };
  };
}

const { jobs } = parse(readFileSync(join(root, ".github/workflows/nightly.yaml"), "utf8")) as Workflow;
const commandWith = (word: string): string =>
  jobs.exhaustive.strategy.matrix.command.find((command) => command.includes(word)) ?? "";

let folder = "";
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "nightly-"))));
afterEach(() => rmSync(folder, { recursive: true }));

/** As in run.yaml. */
function runCommand(command: string, make: string): { readonly succeeded: boolean; readonly stdout: string } {
  writeFileSync(join(folder, "make"), `#!/usr/bin/env bash\n${make}\n`);
  chmodSync(join(folder, "make"), 0o755);
  const env = { PATH: `${folder}:${process.env["PATH"]}`, GITHUB_RUN_NUMBER: "7" };
  const { success, stdout } = Bun.spawnSync(["bash", "-euo", "pipefail", "-c", command], { cwd: folder, env });
  return { succeeded: success, stdout: stdout.toString() };
}

describe("the soak test with a leak", () => {
  test.each([
    ["succeeds if the leak is detected", "echo 'resident memory: too much'; exit 1", true],
    ["fails if the leak is not detected", "echo 'resident memory: fine'", false],
    ["fails if something else is wrong", "echo 'open files: too many'; exit 1", false],
  ])("%s", (_, make, succeeded) => {
    expect(runCommand(commandWith("LEAK=1"), make).succeeded).toBe(succeeded);
  });
});

test("every night simulates other seeds, and as many as the night before", () => {
  expect(runCommand(commandWith("simulate"), 'echo "$*"').stdout).toBe("simulate SEEDS=10000 FIRST=70001\n");
});

describe("the benchmark", () => {
  const { command, artifact } = jobs.bench.with;
  const bench = (night: number): string => `mkdir -p ${artifact}/night-${night}
    touch ${artifact}/night-${night}/report.json
    echo "$* COMPARE=$COMPARE"`;
  const addNight = (night: number): void => {
    mkdirSync(join(folder, artifact, `night-${night}`), { recursive: true });
    writeFileSync(join(folder, artifact, `night-${night}/report.json`), "{}");
  };

  test("compares with nothing the first time", () => {
    expect(runCommand(command, bench(1))).toEqual({ succeeded: true, stdout: "deploy bench COMPARE=\n" });
  });

  test("compares with the last seven nights, and keeps no more", () => {
    for (const night of [1, 2, 3, 4, 5, 6, 7]) addNight(night);
    const { stdout } = runCommand(command, bench(8));
    const reports = [1, 2, 3, 4, 5, 6, 7].map((night) => `${artifact}/night-${night}/report.json`);
    expect(stdout).toBe(`deploy bench COMPARE=${reports.join(",")}\n`);
    expect(readdirSync(join(folder, artifact)).toSorted()).toEqual(
      [2, 3, 4, 5, 6, 7, 8].map((night) => `night-${night}`),
    );
  });

  test("fails if it cannot measure", () => {
    expect(runCommand(command, "exit 1").succeeded).toBe(false);
  });
});
