/** For tests: a small terminal. It understands what this program prints: text, colors, and moving up to draw again. */

export interface Cell {
  readonly text: string;
  /** SGR codes, such as 31 for red. */
  readonly codes: readonly number[];
}

export class Terminal {
  #lines: Cell[][] = [[]];
  #row = 0;
  #codes: number[] = [];

  write(text: string): void {
    // oxlint-disable-next-line no-control-regex -- it parses control sequences
    for (const [part, , parameters, command] of text.matchAll(/(\u001B\[([?\d;]*)([A-Za-z]))|[^\u001B]+/g)) {
      if (command === undefined) this.#print(part);
      else this.#control(command, parameters ?? "");
    }
  }

  /** The lines without trailing empty ones. */
  get cells(): readonly (readonly Cell[])[] {
    const last = this.#lines.findLastIndex((line) => line.length > 0);
    return this.#lines.slice(0, last + 1);
  }

  get text(): string {
    return this.cells.map((line) => line.map((cell) => cell.text).join("")).join("\n");
  }

  #print(text: string): void {
    for (const [at, line] of text.split("\n").entries()) {
      if (at > 0) this.#row++;
      this.#lines[this.#row] ??= [];
      const shown = line.replaceAll("\r", "");
      if (shown !== "") this.#lines[this.#row]?.push({ text: shown, codes: [...this.#codes] });
    }
  }

  #control(command: string, parameters: string): void {
    if (command === "m") this.#style(parameters);
    if (command === "A") this.#row = Math.max(0, this.#row - Number(parameters));
    if (command === "J") this.#lines = this.#lines.slice(0, this.#row).concat([[]]);
  }

  /** A program that ends one style ends all: styles are not nested. */
  #style(parameters: string): void {
    const codes = parameters.split(";").map(Number);
    const ends = new Set([0, 22, 39]);
    this.#codes = codes.some((code) => ends.has(code)) ? [] : [...this.#codes, ...codes];
  }
}
