/** Resolves a stack's configuration: reads values from variables and files, and checks them. */
import { readFile, stat } from "node:fs/promises";
import { type ConfigItem, type ConfigValue } from "@pko/rpc";
import { done, failed, type Outcome } from "../../outcome.ts";
import { parseConfigKey, type ConfigKey } from "./config-key.ts";

export interface ResolvedItem {
  readonly key: ConfigKey;
  readonly secret: boolean;
  readonly value: unknown;
}

const maxFileBytes = 4 * 1024 * 1024;

export async function resolveConfig(
  items: readonly ConfigItem[],
  project: string,
  env: Readonly<Record<string, string>>,
): Promise<Outcome<readonly ResolvedItem[]>> {
  const resolved: ResolvedItem[] = [];
  for (const item of items) {
    const key = parseConfigKey(item.key, project, item.path === true);
    if (!key.ok) return key;
    const value = await readValue(item.value, env);
    if (!value.ok)
      return failed("configInvalid", `the configuration value ${item.key} cannot be used: ${value.failure.message}`);
    if (value.value === null || value.value === undefined) {
      return failed(
        "configInvalid",
        `the configuration value ${item.key} is null or missing; set it or remove the key`,
      );
    }
    resolved.push({ key: key.value, secret: item.secret === true, value: value.value });
  }
  return done(resolved);
}

/** The text to encrypt. A structure is encrypted as JSON, which is also how programs read it. */
export function secretText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

async function readValue(value: ConfigValue, env: Readonly<Record<string, string>>): Promise<Outcome<unknown>> {
  switch (value.from) {
    case "value":
      return done(value.value);
    case "env": {
      const text = env[value.name];
      if (text === undefined) return failed("configInvalid", `the environment variable ${value.name} is not set`);
      return value.json ? parseJson(text) : done(text);
    }
    case "file": {
      const text = await readText(value.path);
      if (!text.ok) return text;
      return value.json ? parseJson(text.value) : text;
    }
  }
}

async function readText(path: string): Promise<Outcome<string>> {
  try {
    const { size } = await stat(path);
    if (size > maxFileBytes) return failed("configInvalid", `the file ${path} is larger than ${maxFileBytes} bytes`);
    return done(new TextDecoder("utf-8", { fatal: true }).decode(await readFile(path)));
  } catch {
    return failed("configInvalid", `the file ${path} does not exist or is not readable text`);
  }
}

function parseJson(text: string): Outcome<unknown> {
  try {
    return done(JSON.parse(text));
  } catch {
    // The parser's message would quote the value.
    return failed("configInvalid", "the value is not valid JSON");
  }
}
