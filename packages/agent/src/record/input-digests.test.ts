import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { Redactor } from "../system/redact.ts";
import { temporaryFolder } from "../testing/folders.ts";
import { inputDigests } from "./input-digests.ts";

interface Inputs {
  readonly settings?: unknown;
  readonly env?: Readonly<Record<string, string>>;
  readonly contents?: string;
  readonly secrets?: readonly string[];
}

async function digests({ settings = {}, env = {}, contents, secrets = [] }: Inputs): Promise<Record<string, string>> {
  const root = temporaryFolder();
  const file = join(root, "settings.yaml");
  writeFileSync(file, stringify(settings));
  const redactor = new Redactor();
  redactor.add(...secrets);
  const project = { name: "demo", runtime: "yaml" };
  const target = { revision: "r", stack: "dev", project, projectFolder: root, settings: file };
  const cli = { redactor, ownEnvironment: async () => env };
  return await inputDigests({ ...target, ...(contents !== undefined && { contents }) }, { cli, hostname: "pod" });
}

const config = (values: object) => ({ settings: { config: values } });

describe("digests of inputs", () => {
  const cases: readonly (readonly [string, Inputs, Inputs, readonly string[]])[] = [
    ["another program", { contents: "git:1" }, { contents: "git:2" }, ["program"]],
    ["another value", config({ "demo:size": 1 }), config({ "demo:size": 2 }), ["configuration"]],
    ["another variable", { env: { A: "1" } }, { env: { A: "1", B: "1" } }, ["environment"]],
    ["another pod", { env: { HOME: "/a", POD: "pod" } }, { env: { POD: "pod" } }, []],
    ["another ciphertext", config({ "demo:t": { secure: "a" } }), config({ "demo:t": { secure: "b" } }), []],
    ["another salt", { settings: { encryptionsalt: "a" } }, { settings: { encryptionsalt: "b" } }, []],
  ];
  for (const [name, one, two, changed] of cases) {
    test(`differ for ${name} in: ${changed.join(", ") || "nothing"}`, async () => {
      const [before, after] = [await digests(one), await digests(two)];
      expect(Object.keys(after).filter((key) => before[key] !== after[key])).toEqual([...changed]);
    });
  }
});

describe("a secret cannot be guessed from the digests, because they do not depend on", () => {
  const cases: Record<string, (secret: string) => Inputs> = {
    "the value of an environment variable": (secret) => ({ env: { A: secret } }),
    "a secret in the configuration that the agent knows": (secret) => ({
      ...config({ "demo:url": `https://${secret}@host` }),
      secrets: [secret],
    }),
    "a value with the name of a secret": (secret) =>
      config({ "demo:dbPassword": secret, "aws:x": { token: [secret] } }),
  };
  for (const [name, inputs] of Object.entries(cases)) {
    test(name, async () => expect(await digests(inputs("canary-1"))).toEqual(await digests(inputs("canary-2"))));
  }
});
