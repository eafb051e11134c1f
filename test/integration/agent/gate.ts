/** A program that waits: YAML that reads a named pipe blocks until the test writes to it. */
import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Source } from "@pko/rpc";
import { waitFor } from "@pko/testkit";
import { program, stash, type TestWorkspace } from "./harness.ts";

export const gatedProgram: Source = program({
  variables: { slow: { "fn::readFile": "./gate" } },
  resources: { first: stash("quick"), second: stash("${slow}") },
  outputs: { word: "${second.output}" },
});

export class Gate {
  readonly #path: string;

  /** Creates the pipe in the program's folder. */
  constructor(where: TestWorkspace | string) {
    this.#path = join(typeof where === "string" ? where : join(where.share, "workspace"), "gate");
    execFileSync("mkfifo", [this.#path]);
  }

  /** Lets the program continue when it waits. */
  async open(text: string): Promise<void> {
    for (let tries = 0; tries < 1200; tries += 1) {
      try {
        const file = openSync(this.#path, constants.O_WRONLY | constants.O_NONBLOCK);
        writeSync(file, text);
        closeSync(file);
        return;
      } catch {
        // The program does not read yet.
        await Bun.sleep(50);
      }
    }
    throw new Error("the program never read from the gate");
  }
}

/**
 * Waits until the CLI has written the state of the stack, and writes no more. It does not replace the file atomically: a run
 * that is killed while it writes leaves a state that nobody can read.
 */
export async function untilStateIsWritten({ backend }: TestWorkspace, stack = "dev"): Promise<void> {
  let last = "";
  const isSettled = (): boolean => {
    const before = last;
    last = readFileSync(join(backend, ".pulumi/stacks/demo", `${stack}.json`), "utf8");
    const { checkpoint } = JSON.parse(last) as { checkpoint: { latest?: { resources?: unknown[] } } };
    return last === before && (checkpoint.latest?.resources ?? []).length > 0;
  };
  await waitFor(isSettled, { timeoutMs: 60_000, pollMs: 500, what: `the state of ${stack}` });
}
