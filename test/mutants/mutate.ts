/** Small mistakes that a programmer could make in a rule, each as an edit of its source. Pure. */
import { parseSync, Visitor } from "oxc-parser";

export interface Mutant {
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
  /** Counted from 1. */
  readonly line: number;
}

/** Bounds are inverted, and moved by one: whether a bound itself is included is a frequent mistake. */
const operators: Readonly<Record<string, readonly string[]>> = {
  "===": ["!=="],
  "!==": ["==="],
  "<": [">=", "<="],
  "<=": [">", "<"],
  ">": ["<=", ">="],
  ">=": ["<", ">"],
  "+": ["-"],
  "-": ["+"],
  "*": ["/"],
  "/": ["*"],
};

interface Span {
  readonly start: number;
  readonly end: number;
}

/** Every mutant of a module, in the order of its source. */
export function mutantsOf(source: string): Mutant[] {
  const { program, errors } = parseSync("rule.ts", source);
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join("\n"));
  const found: Mutant[] = [];
  const text = ({ start, end }: Span): string => source.slice(start, end);
  const add = ({ start, end }: Span, replacement: string): void => {
    found.push({ start, end, replacement, line: source.slice(0, start).split("\n").length });
  };
  new Visitor({
    BinaryExpression(node) {
      const others = operators[node.operator] ?? [];
      const isText = [node.left, node.right].some(({ type }) => type === "TemplateLiteral" || type === "Literal");
      if (node.operator === "+" && isText) return;
      for (const other of others) add(node, `${text(node.left)} ${other} ${text(node.right)}`);
    },
    LogicalExpression(node) {
      if (node.operator === "??") add(node, `(${text(node.right)})`);
      else add(node, `(${text(node.left)} ${node.operator === "&&" ? "||" : "&&"} ${text(node.right)})`);
    },
    UnaryExpression(node) {
      if (node.operator === "!") add(node, `(${text(node.argument)})`);
    },
    ConditionalExpression(node) {
      add(node.test, `!(${text(node.test)})`);
    },
    IfStatement(node) {
      add(node.test, "true");
      add(node.test, "false");
    },
    ReturnStatement(node) {
      if (node.argument?.type === "Literal" && typeof node.argument.value === "boolean") {
        add(node.argument, String(!node.argument.value));
      }
    },
    Literal(node) {
      if (typeof node.value === "number") add(node, `(${text(node)} + 1)`);
    },
    // An array of functions is a list of rules: leave one out.
    ArrayExpression(node) {
      if (node.elements.length < 2 || !node.elements.every((each) => each?.type === "Identifier")) return;
      for (const each of node.elements) if (each) add(each, "() => undefined");
    },
  }).visit(program);
  return found.toSorted((a, b) => a.start - b.start || a.end - b.end);
}

export const applied = (source: string, { start, end, replacement }: Mutant): string =>
  source.slice(0, start) + replacement + source.slice(end);
