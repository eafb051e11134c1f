/** A wrapper of the CLI that records each operation in a file before it starts, and can block previews. */
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { toolPath } from "@pko/cluster";

export class CountingCli {
  readonly path: string;
  readonly #log: string;
  readonly #blocked: string;
  #seen = 0;

  /** Benchmarks measure the unchanged CLI; tests start the quick one. */
  constructor(folder: string, cli: "pulumi" | "quick-pulumi") {
    this.path = join(folder, "pulumi");
    this.#log = join(folder, "runs.log");
    this.#blocked = join(folder, "blocked");
    const record = `printf '%s\\n' "$*" >> '${this.#log}'`;
    const wait = `case "$*" in *' preview '*) while [ -e '${this.#blocked}' ]; do sleep 0.1; done;; esac`;
    writeFileSync(this.path, `#!/bin/sh\n${record}\n${wait}\nexec '${toolPath(cli)}' "$@"\n`);
    chmodSync(this.path, 0o755);
  }

  /** Previews do not continue until `unblock`. */
  block(): void {
    writeFileSync(this.#blocked, "");
  }

  unblock(): void {
    rmSync(this.#blocked, { force: true });
  }

  /** How often each operation started since the last call, by operation and stack. */
  takeRuns(): Record<string, number> {
    const lines = existsSync(this.#log) ? readFileSync(this.#log, "utf8").trimEnd().split("\n") : [];
    const runs: Record<string, number> = {};
    for (const line of lines.slice(this.#seen)) {
      const [, operation, stack] = /^--\S+ --\S+ (up|preview|refresh|destroy|cancel) .*--stack=(\S+)/.exec(line) ?? [];
      if (!operation) continue;
      const run = `${operation}${line.includes(" --preview-only ") ? " --preview-only" : ""} ${stack}`;
      runs[run] = (runs[run] ?? 0) + 1;
    }
    this.#seen = lines.length;
    return runs;
  }
}
