/** Draws lines in place of the ones that it drew before. */
import type { Io } from "../io.ts";

const hideCursor = "\u001B[?25l";
const showCursor = "\u001B[?25h";
const up = (lines: number): string => `\u001B[${lines}A`;
const clearBelow = "\u001B[J";

export class Screen {
  readonly #io: Pick<Io, "out">;
  #drawn: readonly string[] = [];

  constructor(io: Pick<Io, "out">) {
    this.#io = io;
  }

  draw(lines: readonly string[]): void {
    if (lines.join("\n") === this.#drawn.join("\n")) return;
    this.#io.out(
      `${this.#drawn.length === 0 ? hideCursor : this.#start()}${lines.map((each) => `${each}\n`).join("")}`,
    );
    this.#drawn = lines;
  }

  /** Removes what it drew. */
  close(): void {
    if (this.#drawn.length === 0) return;
    this.#io.out(`${this.#start()}${showCursor}`);
    this.#drawn = [];
  }

  #start(): string {
    return `${up(this.#drawn.length)}\r${clearBelow}`;
  }
}
