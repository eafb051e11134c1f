/** A slow program without a language: YAML that reads a pipe waits there until the test writes to it. */
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

  /** In the program's folder. */
  constructor(place: TestWorkspace | string) {
    this.#path = join(typeof place === "string" ? place : join(place.share, "workspace"), "gate");
    execFileSync("mkfifo", [this.#path]);
  }

  /** Lets the program go on, once it waits. */
  async open(word: string): Promise<void> {
    for (let tries = 0; tries < 200; tries += 1) {
      try {
        const file = openSync(this.#path, constants.O_WRONLY | constants.O_NONBLOCK);
        writeSync(file, word);
        closeSync(file);
        return;
      } catch {
        // Nobody reads yet.
        await Bun.sleep(50);
      }
    }
    throw new Error("the program never came to the gate");
  }
}
