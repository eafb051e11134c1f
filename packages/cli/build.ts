/** Builds kubectl-pulumi: `bun packages/cli/build.ts <outfile> [--target=bun-darwin-arm64]`. */
import { join } from "node:path";

import { compileWithConsole } from "@pko/console/embed";

const flags = [
  "--compile",
  "--minify",
  "--bytecode",
  "--format=esm",
  // Files in the folder in which it starts must not configure it.
  "--no-compile-autoload-dotenv",
  "--no-compile-autoload-bunfig",
];

const [outfile, ...targets] = process.argv.slice(2);
if (outfile === undefined || outfile.startsWith("-")) throw new Error("usage: build.ts <outfile> [--target=…]");
const main = join(import.meta.dir, "src/main.ts");
await compileWithConsole([...flags, ...targets, main, "--outfile", outfile]);
