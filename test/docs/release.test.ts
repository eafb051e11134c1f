/**
 * The scripts of .github/workflows/release.yaml, run with programs that record their arguments instead of publishing: what is
 * pushed is what is signed, attested and listed.
 */
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, expect, test } from "bun:test";
import { parse } from "yaml";

import { root } from "./pages.ts";

interface Step {
  readonly id?: string;
  readonly name?: string;
  readonly run?: string;
  readonly env?: Readonly<Record<string, string>>;
}

interface Job {
  readonly with?: Readonly<Record<string, string>>;
}

interface Workflow {
  readonly env: Readonly<Record<string, string>>;
  readonly defaults?: { readonly run: { readonly shell: string } };
  readonly jobs: Readonly<Record<string, Job>> & {
    readonly release: { readonly needs: readonly string[]; readonly steps: readonly Step[] };
  };
}

const workflow = parse(readFileSync(join(root, ".github/workflows/release.yaml"), "utf8")) as Workflow;
const chartFile = "charts/pulumi-kubernetes-operator/Chart.yaml";
const { appVersion } = parse(readFileSync(join(root, chartFile), "utf8")) as { appVersion: string };

/** Digests that the stand-ins return for what they push. */
const digests = { image: `sha256:${"1".repeat(64)}`, chart: `sha256:${"2".repeat(64)}` };

/** Each appends its name and arguments as a line to the journal. */
const standIns: Readonly<Record<string, string>> = {
  docker: `case "$*" in *--metadata-file*) echo '{"containerimage.digest":"${digests.image}"}' > "\${@: -1}";; esac`,
  helm: `case "$1" in
    package) touch "$4/pulumi-kubernetes-operator-1.0.0.tgz";;
    push) echo "Digest: ${digests.chart}" >&2; test -f "$2" -a -z "$PUSH_FAILS";;
  esac`,
  cosign: `case "$1" in attest) test -f "$6";; esac`,
  gh: `sha256sum --check --quiet SHA256SUMS`,
};

const folder = mkdtempSync(join(tmpdir(), "release-"));
const journal = join(folder, "journal");
const outputs = join(folder, "outputs");
afterAll(() => rmSync(folder, { recursive: true }));

beforeAll(() => {
  const bin = join(folder, "bin");
  for (const path of [bin, join(folder, ".build/release")]) mkdirSync(path, { recursive: true });
  for (const [name, script] of Object.entries(standIns)) {
    const record = `{ printf '%s\\t' ${name} "$@"; echo; } >> "${journal}"`;
    writeFileSync(join(bin, name), `#!/usr/bin/env bash\nset -e\n${record}\n${script}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  cpSync(join(root, chartFile), join(folder, chartFile));
  writeFileSync(outputs, "");
  // What `make release-files` builds.
  for (const file of ["install.yaml", "sbom.cdx.json"]) writeFileSync(join(folder, ".build/release", file), file);
});

/** Only a workflow that names bash gets pipefail. */
const shell = workflow.defaults?.run.shell === "bash" ? ["bash", "-eo", "pipefail"] : ["bash", "-e"];

/** Runs a step like GitHub: with bash, its environment, and the outputs of the steps before it. */
function runStep({ run = "", env = {} }: Step, tag: string): { readonly exitCode: number; readonly stderr: string } {
  const known = Object.fromEntries(
    readFileSync(outputs, "utf8")
      .split("\n")
      .map((line) => line.split("=") as [string, string]),
  );
  const expand = (text: string): string =>
    text.replaceAll(/\$\{\{ steps\.\w+\.outputs\.(\w+) \}\}/g, (_, name: string) => known[name] ?? "");
  const variables = Object.entries({ ...workflow.env, ...env }).map(([name, value]) => [name, expand(value)] as const);
  const { exitCode, stderr } = Bun.spawnSync([...shell, "-c", run], {
    cwd: folder,
    env: {
      PATH: `${join(folder, "bin")}:${process.env["PATH"]}`,
      GITHUB_OUTPUT: outputs,
      GITHUB_REF_NAME: tag,
      GITHUB_REPOSITORY: "owner/name",
      GITHUB_SHA: "f".repeat(40),
      PUSH_FAILS: "",
      ...Object.fromEntries(variables),
    },
  });
  return { exitCode, stderr: stderr.toString() };
}

const scripts = workflow.jobs.release.steps.filter(({ run }) => run !== undefined && !run.startsWith("make "));

test("the tests pass on both architectures before anything is published", () => {
  const runners = workflow.jobs.release.needs.map((name) => workflow.jobs[name]?.with?.["runner"]);
  expect(runners).toContain("ubuntu-24.04-arm");
  expect(workflow.jobs.release.needs.map((name) => workflow.jobs[name]?.with?.["command"])).toContain(".ci/run");
});

test("the tag must be the version of the chart", () => {
  const [check] = scripts;
  expect(runStep(check ?? {}, appVersion.slice(0, -1)).exitCode).toBe(1);
  expect(runStep(check ?? {}, appVersion).exitCode).toBe(0);
});

test("a chart that could not be pushed is not signed", () => {
  const push = scripts.find(({ run }) => run?.includes("helm push"));
  expect(runStep({ ...push, env: { PUSH_FAILS: "1" } }, appVersion).exitCode).not.toBe(0);
  expect(readFileSync(journal, "utf8")).not.toContain("cosign");
  rmSync(journal);
});

test("the image and the chart that are pushed are signed by digest, and every file of the release has a checksum", () => {
  for (const step of scripts) {
    const { exitCode, stderr } = runStep(step, appVersion);
    expect({ step: step.name, exitCode, stderr }).toMatchObject({ step: step.name, exitCode: 0 });
  }
  const calls = readFileSync(journal, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => line.trimEnd().split("\t"));
  const callsOf = (...start: readonly string[]): string[][] =>
    calls.filter((call) => start.every((word, index) => call[index] === word));
  const { IMAGE = "", CHARTS = "" } = workflow.env;

  const [build = []] = callsOf("docker", "buildx", "build");
  expect(build).toContain(`${IMAGE}:${appVersion}`);
  expect(build).toContain("linux/amd64,linux/arm64");
  expect(build).toContain("--provenance=mode=max");
  expect(build).toContain("--sbom=true");
  const signed = callsOf("cosign", "sign").map((call) => call.at(-1));
  expect(signed).toEqual([`${IMAGE}@${digests.image}`, `${CHARTS}/pulumi-kubernetes-operator@${digests.chart}`]);
  expect(callsOf("cosign", "attest").map((call) => call.at(-1))).toEqual([`${IMAGE}@${digests.image}`]);
  const [release = []] = callsOf("gh", "release", "create");
  const sums = readFileSync(join(folder, ".build/release/SHA256SUMS"), "utf8").trim().split("\n");
  const files = release.filter((word) => word.startsWith("./")).map((path) => path.slice(2));
  const listed = sums.map((line) => line.split("  ")[1] ?? "");
  expect([...listed, "SHA256SUMS"].toSorted()).toEqual(files.toSorted());
  expect(files).toContain("sbom.cdx.json");
});
