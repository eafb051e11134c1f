/** The file in which init containers set variables. */
import { parseEnvFile } from "../../../packages/agent/src/pulumi/env-file.ts";
import { hold, textOf, type Target } from "../engine/target.ts";

/** Of all values together: more than the kernel passes to a program. */
const maxChars = 1024 * 1024;

function check(input: Uint8Array): void {
  const text = textOf(input);
  const variables = Object.entries(parseEnvFile(text) ?? {});
  for (const [name] of variables) hold(/^[A-Za-z_][\w.]*$/.test(name), "a variable has a valid name");
  const chars = variables.reduce((sum, [, value]) => sum + value.length, 0);
  hold(chars <= maxChars, "the values have a limited size");
  checkRoundTrip(variables);
}

/** What is in single quotes is literal. */
function checkRoundTrip(variables: readonly (readonly [string, string])[]): void {
  const literal = variables.filter(([, value]) => !/['\r]/.test(value));
  const written = literal.map(([name, value]) => `export ${name}='${value}' # comment\n`).join("");
  hold(
    Bun.deepEquals(Object.entries(parseEnvFile(written) ?? {}), literal),
    "literal values are read as they were written",
  );
}

export const envFileTarget: Target = {
  name: "env-file",
  form: "text",
  seeds: [
    "# comment\nexport A=1\nB='two $A'\nC=\"three\\n${A}\" # more\nD: plain $B text #not\n",
    'A=\\$A\nE="multi\nline"\nF=\n\n\nG = x\r\nH="\\"quoted\\""\n',
    "A=aaaaaaaa\nA=$A$A\nA=$A$A\n",
  ],
  words: ["export ", "$A", "${A}", "\n", "A=", '="', "='", "\\$", "\r\n", "#"],
  rounds: 4000,
  check,
};
