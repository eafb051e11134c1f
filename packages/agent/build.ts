/**
 * Builds the agent's executable: `bun packages/agent/build.ts <outfile> [--version=…] [--target=bun-linux-arm64 …]`.
 * Images, tests and benchmarks all use it.
 */
import { join } from "node:path";

import { compile } from "@pko/process/compile";

const flags = [
  // The agent mostly waits: without JIT compilation it needs 9 MB less memory (measured, bench/parts/agent).
  "--compile-jit-policy=10000",
  // Collects garbage more often: 4 MB less memory after some updates.
  "--compile-exec-argv=--smol",
];

interface BuildOptions {
  readonly outfile: string;
  readonly version?: string;
  /** For `bun build --target`: another architecture, or musl. */
  readonly target?: string;
}

export function buildAgent({ outfile, version, target }: BuildOptions): void {
  const main = join(import.meta.dir, "src/main.ts");
  const define = version === undefined ? [] : ["--define", `AGENT_VERSION=${JSON.stringify(version)}`];
  const forTarget = target === undefined ? [] : [`--target=${target}`];
  compile({ main, outfile, flags: [...flags, ...define, ...forTarget] });
}

if (import.meta.main) {
  const option = (name: string): string | undefined =>
    process.argv.find((argument) => argument.startsWith(`--${name}=`))?.slice(name.length + 3);
  const outfile = process.argv[2];
  if (!outfile || outfile.startsWith("-"))
    throw new Error("usage: bun packages/agent/build.ts <outfile> [--version=…] [--target=…]");
  const [version, target] = [option("version"), option("target")];
  buildAgent({ outfile, ...(version && { version }), ...(target && { target }) });
}
