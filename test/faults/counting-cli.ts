/** A wrapper of the CLI that records each operation in a file before it starts. */
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { toolPath } from "@pko/cluster";

export class CountingCli {
  readonly path: string;
  readonly #log: string;
  #seen = 0;

  constructor(folder: string) {
    this.path = join(folder, "pulumi");
    this.#log = join(folder, "runs.log");
    const record = `printf '%s\\n' "$*" >> '${this.#log}'`;
    writeFileSync(this.path, `#!/bin/sh\n${record}\nexec '${toolPath("pulumi")}' "$@"\n`);
    chmodSync(this.path, 0o755);
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
