/** Builds kubectl-pulumi: `bun packages/cli/build.ts <outfile> [--target=bun-darwin-arm64]`. */
import { join } from "node:path";

import { compileWithConsole } from "@pko/console/embed";

const [outfile, ...flags] = process.argv.slice(2);
if (outfile === undefined || outfile.startsWith("-")) throw new Error("usage: build.ts <outfile> [--target=…]");
await compileWithConsole({ main: join(import.meta.dir, "src/main.ts"), outfile, flags });
