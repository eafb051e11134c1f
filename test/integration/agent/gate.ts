/** A program that waits: YAML that reads a named pipe blocks until the test writes to it. */
import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Source } from "@pko/rpc";
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
    for (let tries = 0; tries < 200; tries += 1) {
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
