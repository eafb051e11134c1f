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

  /** Lets the program continue when it waits. `whileItWaits` is called before. */
  async open(text: string, whileItWaits: () => void = () => undefined): Promise<void> {
    const file = await waitFor(() => this.#openForReader(), {
      timeoutMs: 120_000,
      pollMs: 50,
      what: "the program to read from the gate",
    });
    whileItWaits();
    writeSync(file, text);
    closeSync(file);
  }

  /** Undefined if the program does not read yet. */
  #openForReader(): number | undefined {
    try {
      return openSync(this.#path, constants.O_WRONLY | constants.O_NONBLOCK);
    } catch {
      return undefined;
    }
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
