/** Secrets and ConfigMaps that a Stack refers to: read by name when an update is due, never listed or watched. */
import type { NormalStack } from "@pko/api";

/** The texts by key; undefined when there is no such object, or it may not be read. */
export type ReadData = (name: string) => Promise<Readonly<Record<string, string>> | undefined>;

export interface Readers {
  readonly secret: ReadData;
  readonly configMap: ReadData;
}

/** What is missing, in sentences. */
export async function missingInputs(spec: NormalStack, readers: Readers): Promise<string[]> {
  const missing: string[] = [];
  for (const { kind, name, key, json, user } of referencesOf(spec)) {
    const data = await readers[kind](name);
    const what = `${kind === "secret" ? "Secret" : "ConfigMap"} ${name}`;
    if (!data) missing.push(`there is no ${what}, which ${user} needs`);
    else if (key !== undefined && data[key] === undefined)
      missing.push(`the ${what} has no key ${key}, which ${user} needs`);
    else if (json && !isJson(data[key ?? ""] ?? ""))
      missing.push(`the key ${key} of the ${what} is not JSON, as ${user} says`);
  }
  return missing;
}

interface Reference {
  readonly kind: "secret" | "configMap";
  readonly name: string;
  readonly key?: string;
  readonly json?: boolean;
  /** The field that refers to it. */
  readonly user: string;
}

function referencesOf({ env, envFrom, config }: NormalStack): Reference[] {
  const found: Reference[] = envFrom.map(({ kind, name }) => ({
    kind,
    name,
    user: kind === "secret" ? "envSecrets" : "envs",
  }));
  for (const { name, from } of env) {
    if (from.kind !== "secret" && from.kind !== "configMap") continue;
    found.push({ kind: from.kind, name: from.name, key: from.key, user: `the variable ${name}` });
  }
  for (const { key, from } of config) {
    const user = `the configuration value ${key}`;
    if (from.kind === "secret") found.push({ kind: "secret", name: from.name, key: from.key, user });
    if (from.kind === "configMap") found.push({ ...from, kind: "configMap", user });
  }
  return found;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
