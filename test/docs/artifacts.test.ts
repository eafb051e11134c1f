/** Jobs that call .github/workflows/run.yaml in one run of a workflow keep their artifacts under different names. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, describe, expect, test } from "bun:test";
import { parse } from "yaml";

import { files, root } from "./pages.ts";

type Values = Readonly<Record<string, string>>;

interface Step {
  readonly id?: string;
  readonly uses?: string;
  readonly run?: string;
  readonly env?: Values;
  readonly with?: Values;
}

interface Job {
  readonly uses?: string;
  readonly with?: Readonly<Record<string, string | number>>;
  readonly strategy?: { readonly matrix: Readonly<Record<string, readonly string[]>> };
  readonly steps?: readonly Step[];
}

interface Workflow {
  readonly on: { readonly workflow_call?: { readonly inputs?: Readonly<Record<string, { default?: string }>> } };
  readonly jobs: Readonly<Record<string, Job>>;
}

const called = ".github/workflows/run.yaml";
const read = (path: string): Workflow => parse(readFileSync(join(root, path), "utf8")) as Workflow;
const { on, jobs } = read(called);
const { steps = [] } = jobs["run"] ?? {};
const uploads = steps.filter(({ uses }) => uses?.startsWith("actions/upload-artifact@"));

const folder = mkdtempSync(join(tmpdir(), "artifacts-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Throws on an expression that has no value here, such as one of a context that is the same for all callers. */
function evaluate(text: string, values: Values): string {
  return text.replaceAll(/\$\{\{ (\S+) \}\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`${name} does not distinguish the callers of ${called}`);
    return value;
  });
}

/** The inputs of each call, one for each job of its matrix. */
function callsIn(workflow: Workflow): Values[] {
  const defaults = Object.entries(on.workflow_call?.inputs ?? {}).map(([name, input]) => [name, input.default ?? ""]);
  return Object.values(workflow.jobs)
    .filter(({ uses }) => uses === `./${called}`)
    .flatMap(({ strategy, with: given = {} }) =>
      matrixJobs(strategy?.matrix).map((values) => {
        const inputs = Object.entries(given).map(([name, text]) => [name, evaluate(String(text), values)]);
        return Object.fromEntries([...defaults, ...inputs].map(([name, value]) => [`inputs.${name}`, String(value)]));
      }),
    );
}

/** One for each value: no matrix has a second dimension. */
function matrixJobs(matrix: Readonly<Record<string, readonly string[]>> = {}): Values[] {
  const [[name, values] = ["", [""]], ...others] = Object.entries(matrix);
  expect(others).toEqual([]);
  return values.map((value) => ({ [`matrix.${name}`]: value }));
}

/** The names under which a call keeps its artifacts: the commands with an ID are run, as on GitHub. */
function artifactNames(inputs: Values): string[] {
  const output = join(folder, crypto.randomUUID());
  const outputs: Record<string, string> = {};
  for (const { id, run, env = {} } of steps) {
    if (id === undefined || run === undefined) continue;
    const given = Object.entries(env).map(([name, text]) => [name, evaluate(text, inputs)] as const);
    const runner = {
      PATH: process.env["PATH"] ?? "",
      GITHUB_RUN_ATTEMPT: "1",
      GITHUB_OUTPUT: output,
      PKO_CACHE: folder,
    };
    const stepEnv: Values = { ...runner, ...Object.fromEntries(given) };
    // The shell of the workflow's defaults.
    const { exitCode, stderr } = Bun.spawnSync(["bash", "-eo", "pipefail", "-c", run], { env: stepEnv });
    expect(stderr.toString()).toBe("");
    expect(exitCode).toBe(0);
    for (const line of readFileSync(output, "utf8").trimEnd().split("\n")) {
      const [name, value = ""] = line.split(/=(.*)/s);
      outputs[`steps.${id}.outputs.${name}`] = value;
    }
  }
  return uploads.map((step) => evaluate(step.with?.["name"] ?? "", { ...inputs, ...outputs }));
}

describe("artifacts", () => {
  const callers = files.filter(
    (path) => /^\.github\/workflows\/.*\.yaml$/.test(path) && callsIn(read(path)).length > 0,
  );

  test("there are callers with a matrix", () => {
    expect(callers).toContain(".github/workflows/nightly.yaml");
    expect(callsIn(read(".github/workflows/nightly.yaml")).length).toBeGreaterThan(10);
    expect(uploads.length).toBeGreaterThan(1);
  });

  test.each(callers)("of %s have valid names, and no two have the same", (path) => {
    const names = callsIn(read(path)).flatMap(artifactNames);
    expect(names.filter((name) => !/^[\w.-]+$/.test(name))).toEqual([]);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });

  test("include the files of hidden folders, which upload-artifact leaves out by default", () => {
    for (const step of uploads) expect(step.with).toMatchObject({ "include-hidden-files": true });
  });
});
