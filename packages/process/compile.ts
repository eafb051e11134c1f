/** Compiles an executable of this repository. Images, tests and benchmarks use the same ones. */
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join, resolve } from "node:path";

const repositoryRoot = join(import.meta.dir, "../..");

const commonFlags = [
  "--compile",
  // Stack traces and profiles show the names, files and lines of the source (docs/adr/0033). Identifiers are not shortened,
  // because source maps do not restore names.
  "--minify-whitespace",
  "--minify-syntax",
  "--sourcemap=inline",
  // Parsed at build time: 2 MB less memory and a faster start.
  "--bytecode",
  "--format=esm",
  // Files in the folder in which it starts must not configure it.
  "--no-compile-autoload-dotenv",
  "--no-compile-autoload-bunfig",
];

interface Compilation {
  readonly main: string;
  readonly outfile: string;
  /** Further flags of `bun build`, such as a target. */
  readonly flags?: readonly string[];
}

export function compile({ main, outfile, flags = [] }: Compilation): void {
  const output = resolve(outfile);
  const args = ["build", ...commonFlags, ...flags, main, "--outfile", output];
  // The files in stack traces are relative to the working directory.
  execFileSync(process.execPath, args, { cwd: repositoryRoot, stdio: ["ignore", "ignore", "inherit"] });
  // It is part of the executable.
  rmSync(`${output}.map`, { force: true });
}
