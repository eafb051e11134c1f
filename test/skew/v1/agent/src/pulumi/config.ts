/** The configuration a stack is to have: values taken from where they are, checked, and made ready for its settings. */
import { readFile, stat } from "node:fs/promises";
import { assertNever, type ConfigItem, type ConfigValue } from "../../../rpc/src/index.ts";
import { done, failed, type Outcome } from "../outcome.ts";
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
    const value = await valueOf(item.value, env);
    if (!value.ok) return failed("configInvalid", `the configuration ${item.key}: ${value.failure.message}`);
    if (value.value === null || value.value === undefined) {
      return failed("configInvalid", `the configuration ${item.key} has no value`);
    }
    resolved.push({ key: key.value, secret: item.secret === true, value: value.value });
  }
  return done(resolved);
}

/** What is encrypted: a structure as its JSON, which is what programs get to read anyway. */
export function secretText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

async function valueOf(value: ConfigValue, env: Readonly<Record<string, string>>): Promise<Outcome<unknown>> {
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
    default:
      return assertNever(value);
  }
}

async function readText(path: string): Promise<Outcome<string>> {
  try {
    const { size } = await stat(path);
    if (size > maxFileBytes) return failed("configInvalid", `the file ${path} is too large`);
    return done(new TextDecoder("utf-8", { fatal: true }).decode(await readFile(path)));
  } catch {
    return failed("configInvalid", `the file ${path} cannot be read`);
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
