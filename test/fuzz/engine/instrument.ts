/** Adds a counter to every branch of a module, so that the fuzzer sees which inputs reach new code. Pure. */
import { parseSync, Visitor } from "oxc-parser";

export interface Instrumented {
  readonly source: string;
  /** The text literals of the module: words that inputs may need. */
  readonly words: readonly string[];
}

interface Span {
  readonly start: number;
  readonly end: number;
}

interface Node extends Span {
  readonly type: string;
}

/** The name of the array with the counters, which is global. */
export const counters = "__fuzzCounters";

/** `allocate` returns the number of the next counter. */
export function instrument(source: string, allocate: () => number): Instrumented {
  const { program, errors } = parseSync("module.ts", source);
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join("\n"));
  const edits = new Edits();
  const words = new Set<string>();
  const count = (): string => `${counters}[${allocate()}]++`;
  const expression = (node: Node): void => edits.wrap(node, `(${count()}, `, ")");
  const statement = (node: Node | null | undefined): void => {
    if (node?.type === "BlockStatement") edits.insert(node.start + 1, `${count()};`);
    else if (node) edits.wrap(node, `{${count()};`, "}");
  };
  const functionBody = ({ body }: { readonly body: Node | null }): void => {
    if (body) edits.insert(body.start + 1, `${count()};`);
  };
  const loop = ({ body }: { readonly body: Node }): void => statement(body);
  new Visitor({
    FunctionDeclaration: functionBody,
    FunctionExpression: functionBody,
    ArrowFunctionExpression({ body, expression: isExpression }) {
      if (isExpression) expression(body);
      else functionBody({ body });
    },
    IfStatement({ consequent, alternate }) {
      statement(consequent);
      statement(alternate);
    },
    ConditionalExpression({ consequent, alternate }) {
      expression(consequent);
      expression(alternate);
    },
    LogicalExpression: ({ right }) => expression(right),
    SwitchCase({ consequent: [first] }) {
      if (first) edits.insert(first.start, `${count()};`);
    },
    CatchClause: ({ body }) => statement(body),
    ForStatement: loop,
    ForOfStatement: loop,
    ForInStatement: loop,
    WhileStatement: loop,
    Literal({ value }) {
      if (typeof value === "string" && value !== "" && value.length <= 64) words.add(value);
    },
  }).visit(program);
  return { source: edits.apply(source), words: [...words] };
}

/** Insertions into a text. What wraps a node is outside of what wraps its parts. */
class Edits {
  readonly #opening = new Map<number, string>();
  readonly #closing = new Map<number, string>();

  /** Nodes are visited before their parts. */
  insert(at: number, text: string): void {
    this.#opening.set(at, (this.#opening.get(at) ?? "") + text);
  }

  wrap({ start, end }: Span, before: string, after: string): void {
    this.insert(start, before);
    this.#closing.set(end, after + (this.#closing.get(end) ?? ""));
  }

  apply(source: string): string {
    const places = [...new Set([...this.#opening.keys(), ...this.#closing.keys()])].toSorted((a, b) => a - b);
    let [result, done] = ["", 0];
    for (const at of places) {
      result += source.slice(done, at) + (this.#closing.get(at) ?? "") + (this.#opening.get(at) ?? "");
      done = at;
    }
    return result + source.slice(done);
  }
}
