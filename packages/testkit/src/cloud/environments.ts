/** ESC environments: values, some of them secret, merged over those of imported environments. */
import { parse } from "yaml";

import { Refusal, type Answer, type Call } from "./http.ts";

interface Environment {
  readonly imports?: readonly string[];
  /** As in the YAML of an environment; `{"fn::secret": value}` is a secret. */
  readonly values?: Readonly<Record<string, unknown>>;
}

/** A value in a response of ESC. */
interface Value {
  readonly value: string | number | boolean | null | Value[] | Record<string, Value>;
  readonly secret?: boolean;
  readonly trace: { readonly def: object };
}

const trace = { def: {} };
const maxDepth = 16;

export class Environments {
  readonly #environments = new Map<string, Environment>();
  readonly #opened = new Map<string, object>();
  /** The imports of each opened environment, in order. */
  readonly openings: string[][] = [];

  /** `name` is PROJECT/NAME, or NAME in the project `default`. */
  set(organization: string, name: string, environment: Environment): void {
    this.#environments.set(environmentKey(organization, name), environment);
  }

  async check(call: Call): Promise<Answer> {
    return this.#evaluate(call, await call.text());
  }

  async open(call: Call): Promise<Answer> {
    const text = await call.text();
    const id = crypto.randomUUID();
    this.#opened.set(id, this.#evaluate(call, text));
    this.openings.push([...importsIn(parse(text) as Environment)]);
    return { id };
  }

  readOpened(call: Call): Answer {
    call.identity();
    const opened = this.#opened.get(call.params["session"] ?? "");
    if (!opened) throw new Refusal(404, "Not Found: Session not found");
    return opened;
  }

  #evaluate(call: Call, text: string): object {
    const { organization = "" } = call.params;
    if (!call.identity().organizations.includes(organization)) {
      throw new Refusal(404, `Not Found: Organization '${organization}' not found`);
    }
    const { value } = this.#merged(organization, parse(text) as Environment, 0);
    return { exprs: {}, properties: value };
  }

  /** Later imports override earlier ones, and an environment's own values override all of them. */
  #merged(organization: string, environment: Environment, depth: number): Value {
    const imported = importsIn(environment).map((name) => {
      const found = this.#environments.get(environmentKey(organization, name));
      if (!found || depth > maxDepth) throw unknownEnvironment(name);
      return this.#merged(organization, found, depth + 1);
    });
    return [...imported, toValue(environment.values ?? {})].reduce(merge, { value: {}, trace });
  }
}

const importsIn = ({ imports = [] }: Environment): readonly string[] => imports;

function environmentKey(organization: string, name: string): string {
  const [path = ""] = name.split("@", 1);
  return `${organization}/${path.includes("/") ? path : `default/${path}`}`;
}

function unknownEnvironment(name: string): Refusal {
  const summary = `unknown environment "${name}"`;
  return new Refusal(400, "Bad Request: the environment has errors", { diagnostics: [{ summary }] });
}

function toValue(plain: unknown): Value {
  if (Array.isArray(plain)) return { value: plain.map(toValue), trace };
  if (typeof plain !== "object" || plain === null) return { value: plain as Value["value"], trace };
  const entries = Object.entries(plain);
  const [only] = entries;
  if (entries.length === 1 && only?.[0] === "fn::secret") return { ...toValue(only[1]), secret: true };
  return { value: Object.fromEntries(entries.map(([key, value]) => [key, toValue(value)])), trace };
}

function merge(below: Value, above: Value): Value {
  if (!isObject(below.value) || !isObject(above.value)) return above;
  const merged = { ...below.value };
  for (const [key, value] of Object.entries(above.value)) {
    const under = merged[key];
    merged[key] = under ? merge(under, value) : value;
  }
  return { ...above, value: merged };
}

function isObject(value: Value["value"]): value is Record<string, Value> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
