/** Whether the simulation finds mistakes: each patch in `mutants` plants one in the operator. No file is changed. */
import { Glob } from "bun";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { repositoryRoot } from "../runner/suites.ts";
import { runSeeds } from "./seeds.ts";

const folder = join(import.meta.dir, "mutants");

interface Search {
  /** Of the patch, or a pattern. */
  readonly name: string;
  readonly maxSeeds: number;
  readonly signal: AbortSignal;
}

/** Prints how many seeds were needed for each, and returns whether all were found. */
export async function findMutants(search: Search): Promise<boolean> {
  const { name, maxSeeds } = search;
  const patches = (await Array.fromAsync(new Glob(`${name}.patch`).scan(folder))).toSorted();
  let isComplete = patches.length > 0;
  for (const patch of patches) {
    const found = await firstViolation(patch, search);
    if (search.signal.aborted) return false;
    isComplete &&= found !== undefined;
    console.log(
      `${patch}: ${found ? `found by seed ${found.seed}: ${found.violation}` : `not found by ${maxSeeds} seeds`}`,
    );
  }
  return isComplete;
}

async function firstViolation(
  patch: string,
  { maxSeeds, signal }: Search,
): Promise<{ readonly seed: number; readonly violation: string } | undefined> {
  const { file, source } = patched(join(folder, patch));
  const env = { MUTANT_FILE: join(repositoryRoot, file), MUTANT_SOURCE: source };
  const preload = join(repositoryRoot, "test/mutants/preload.ts");
  for await (const { seed, violations } of runSeeds({ first: 1, last: maxSeeds, env, preload, signal })) {
    const [violation] = violations;
    if (violation !== undefined) return { seed, violation };
  }
  return undefined;
}

/** The file that the patch changes, and its text after that. */
function patched(patch: string): { readonly file: string; readonly source: string } {
  const file = /^\+\+\+ b\/(.*)$/m.exec(readFileSync(patch, "utf8"))?.[1] ?? "";
  const copy = mkdtempSync(join(tmpdir(), "simulation-mutant-"));
  try {
    mkdirSync(join(copy, dirname(file)), { recursive: true });
    cpSync(join(repositoryRoot, file), join(copy, file));
    const { exitCode, stderr } = Bun.spawnSync(["git", "apply", patch], { cwd: copy, stderr: "pipe" });
    if (exitCode !== 0) throw new Error(`${patch} does not apply: ${stderr.toString()}`);
    return { file, source: readFileSync(join(copy, file), "utf8") };
  } finally {
    rmSync(copy, { recursive: true });
  }
}
