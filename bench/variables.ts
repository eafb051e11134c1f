/** Environment variables, and everything that is wrong with them, so that all of it can be reported at once. */

export type Environment = Readonly<Record<string, string | undefined>>;

interface Whole {
  readonly name: string;
  readonly least: 0 | 1;
}

export class Variables {
  readonly #env: Environment;
  readonly problems: string[] = [];

  constructor(env: Environment) {
    this.#env = env;
  }

  /** Undefined if it is empty, too: make passes variables without a value. */
  text(name: string): string | undefined {
    return this.#env[name] || undefined;
  }

  list(name: string): string[] {
    return (this.text(name) ?? "").split(",").filter((item) => item !== "");
  }

  number({ name, least }: Whole): number | undefined {
    const given = this.text(name);
    if (given === undefined) return undefined;
    const number = wholeNumber(given, least);
    if (number === undefined) this.#reject(name, `a whole number of ${least} or more, such as ${name}=2`);
    return number;
  }

  numbers({ name, least }: Whole): number[] | undefined {
    const items = this.text(name)?.split(",");
    const numbers = items?.flatMap((item) => wholeNumber(item, least) ?? []);
    if (numbers?.length === items?.length) return numbers;
    this.#reject(name, `whole numbers of ${least} or more, separated by commas, such as ${name}=2,10`);
    return undefined;
  }

  /** The value of JSON. `example` shows what is expected. */
  object(name: string, example: string): Record<string, unknown> | undefined {
    const given = this.text(name);
    if (given === undefined) return undefined;
    const object = objectIn(given);
    if (!object) this.#reject(name, `a JSON object, such as ${name}='${example}'`);
    return object;
  }

  #reject(name: string, expected: string): void {
    this.problems.push(`${name} is ${JSON.stringify(this.text(name))}: give ${expected}`);
  }
}

function wholeNumber(text: string, least: number): number | undefined {
  const number = /^\d+$/.test(text.trim()) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(number) && number >= least ? number : undefined;
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
