import { javascriptProject } from "../harness.ts";

/** A program that outputs its configuration and the environment variables that `ECHO` names. */
export const echoProject = javascriptProject(
  "echo",
  `
const pulumi = require("@pulumi/pulumi");

const names = (process.env.ECHO ?? "").split(",");

exports.given = pulumi.secret({
  config: JSON.parse(process.env.PULUMI_CONFIG ?? "{}"),
  secretKeys: JSON.parse(process.env.PULUMI_CONFIG_SECRET_KEYS ?? "[]"),
  variables: Object.fromEntries(names.map((name) => [name, process.env[name] ?? null])),
});
`,
);

export interface Given {
  readonly config: Readonly<Record<string, string>>;
  readonly secretKeys: readonly string[];
  readonly variables: Readonly<Record<string, string | null>>;
}
