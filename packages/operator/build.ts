/** Makes the operator's executable: `bun packages/operator/build.ts <outfile> [--target=bun-linux-arm64]`. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";

const flags = [
  "--compile",
  "--minify",
  "--bytecode",
  "--format=esm",
  // The operator waits for others: without compiled code it does so in 10 MB less.
  "--compile-jit-policy=10000",
  // It starts in a folder that is not its own: nothing there may speak to it.
  "--no-compile-autoload-dotenv",
  "--no-compile-autoload-bunfig",
];

const [outfile, ...targets] = process.argv.slice(2);
if (outfile === undefined || outfile.startsWith("-")) throw new Error("which file is to be made?");
const main = join(import.meta.dir, "src/main.ts");
execFileSync(process.execPath, ["build", ...flags, ...targets, main, "--outfile", outfile], {
  stdio: ["ignore", "ignore", "inherit"],
});
