/** Makes the operator's executable: `bun packages/operator/build.ts <outfile>`. */
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

const outfile = process.argv[2];
if (outfile === undefined) throw new Error("which file is to be made?");
const main = join(import.meta.dir, "src/main.ts");
execFileSync(process.execPath, ["build", ...flags, main, "--outfile", outfile], {
  stdio: ["ignore", "ignore", "inherit"],
});
