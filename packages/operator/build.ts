/** Builds the operator's executable: `bun packages/operator/build.ts <outfile> [--target=bun-linux-arm64]`. */
import { join } from "node:path";

import { compileWithConsole } from "@pko/console/embed";

import { compileReluctance } from "./src/runtime.ts";

// The operator mostly waits: without JIT compilation it needs 10 MB less memory.
const flags = [`--compile-jit-policy=${compileReluctance}`];

interface BuildOptions {
  readonly outfile: string;
  /** Another module that starts the operator, for tests. */
  readonly main?: string;
  /** Further flags of `bun build`, such as a target. */
  readonly further?: readonly string[];
}

export async function buildOperator({ outfile, main, further = [] }: BuildOptions): Promise<void> {
  const entry = main ?? join(import.meta.dir, "src/main.ts");
  await compileWithConsole({ main: entry, outfile, flags: [...flags, ...further] });
}

if (import.meta.main) {
  const [outfile, ...targets] = process.argv.slice(2);
  if (outfile === undefined || outfile.startsWith("-")) throw new Error("usage: build.ts <outfile> [--target=…]");
  await buildOperator({ outfile, further: targets });
}
