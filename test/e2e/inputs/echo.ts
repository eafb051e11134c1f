/** A program that tells what it was given: all its configuration, and the variables that `ECHO` names. */
export const echoProject: Readonly<Record<string, string>> = {
  "Pulumi.yaml": "name: echo\nruntime: nodejs\n",
  "package.json": '{ "name": "echo", "main": "index.ts" }',
  // The SDK comes with the image; the language host wants to see a folder all the same.
  "node_modules/.keep": "",
  "index.ts": `
import * as pulumi from "@pulumi/pulumi";

const names = (process.env.ECHO ?? "").split(",");

export const given = pulumi.secret({
  config: JSON.parse(process.env.PULUMI_CONFIG ?? "{}"),
  secretKeys: JSON.parse(process.env.PULUMI_CONFIG_SECRET_KEYS ?? "[]"),
  variables: Object.fromEntries(names.map((name) => [name, process.env[name] ?? null])),
});
`,
};

export interface Given {
  readonly config: Readonly<Record<string, string>>;
  readonly secretKeys: readonly string[];
  readonly variables: Readonly<Record<string, string | null>>;
}
