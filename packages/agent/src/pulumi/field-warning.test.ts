import { describe, expect, test } from "bun:test";

import { isFieldWarning, withoutFieldWarning } from "./field-warning.ts";

const printed =
  "\u001B[33mWarning\u001B[0m: Pulumi.yaml: root-level `configuration` field is deprecated; please use `config` instead.\n";

test.each([
  ["as the language host prints it", printed, true],
  ["with more text", `${printed}Error: something else`, false],
  ["about another field", printed.replace("configuration", "something"), false],
  ["nothing", "", false],
])("the warning is recognized exactly: %s", (_, line, expected) => expect(isFieldWarning(line)).toBe(expected));

describe("the printed text", () => {
  const line = printed.trimEnd();
  const row = ` +  pulumi:pulumi:Stack demo-dev create ${line}`;
  const header = "Diagnostics:\n  pulumi:pulumi:Stack (demo-dev):\n";
  const rest = "Resources:\n    + 2 to create\n";

  test("has no list of diagnostics if the warning was the only one", () => {
    const text = `Previewing update (dev):\n${row}\n${header}    ${line}\n\n${rest}`;
    expect(withoutFieldWarning(text)).toBe(`Previewing update (dev):\n${rest}`);
  });

  test("keeps the other diagnostics", () => {
    const text = `${header}    ${line}\n    Error: boom\n\n${rest}`;
    expect(withoutFieldWarning(text)).toBe(`${header}    Error: boom\n\n${rest}`);
  });

  test.each([
    ["before", (stack: string, other: string) => `${other}${stack}`],
    ["after", (stack: string, other: string) => `${stack}${other}`],
  ])("keeps the diagnostics of a resource %s the stack", (_, order) => {
    const other = "  random:index:Text (a):\n    warning: boom\n\n";
    const text = `Diagnostics:\n${order(`  pulumi:pulumi:Stack (demo-dev):\n    ${line}\n\n`, other)}${rest}`;
    expect(withoutFieldWarning(text)).toBe(`Diagnostics:\n${other}${rest}`);
  });

  test("keeps the heading of a stack with diagnostics of another stream", () => {
    const text = `${header}    ${line}\n\n    Error: boom\n\n${rest}`;
    expect(withoutFieldWarning(text)).toBe(`${header}\n    Error: boom\n\n${rest}`);
  });

  test("is unchanged without the warning, including an empty list", () => {
    const text = `${header}\n${rest}`;
    expect(withoutFieldWarning(text)).toBe(text);
  });
});
