/**
 * Secrets and ConfigMaps that a Stack refers to: read by name, never listed or watched. What the environment takes from
 * them is looked at when an update is due; what the configuration takes, always, for a change of it makes one due.
 */
import { createHash } from "node:crypto";

import type { NormalStack } from "@pko/api";

import type { WatchedObject } from "../inputs/reference-watch.ts";
import type { ConfigInput } from "./view.ts";

export interface Read {
  readonly uid: string;
  readonly version: string;
  /** The texts by key. */
  readonly data: Readonly<Record<string, string>>;
}

/** Undefined when there is no such object, or it may not be read. */
type ReadData = (name: string) => Promise<Read | undefined>;

export interface Readers {
  readonly secret: ReadData;
  readonly configMap: ReadData;
}

/** What is missing, in sentences. */
export async function missingInputs(spec: NormalStack, readers: Readers): Promise<string[]> {
  const missing: string[] = [];
  for (const { kind, name, key, json, user } of referencesOf(spec)) {
    const data = (await readers[kind](name))?.data;
    const what = `${kind === "secret" ? "Secret" : "ConfigMap"} ${name}`;
    if (!data) missing.push(`there is no ${what}, which ${user} needs`);
    else if (key !== undefined && data[key] === undefined)
      missing.push(`the ${what} has no key ${key}, which ${user} needs`);
    else if (json && !isJson(data[key ?? ""] ?? ""))
      missing.push(`the key ${key} of the ${what} is not JSON, as ${user} says`);
  }
  return missing;
}

interface ConfigInputs {
  readonly values: readonly ConfigInput[];
  /** The objects that hold them. */
  readonly objects: readonly WatchedObject[];
}

/** What the configuration takes from Secrets and ConfigMaps, each value with a version of its own. */
export async function readConfigInputs(spec: NormalStack, readers: Readers): Promise<ConfigInputs> {
  const values: ConfigInput[] = [];
  const objects = new Map<string, WatchedObject>();
  for (const { from } of spec.config) {
    if (from.kind !== "secret" && from.kind !== "configMap") continue;
    const { kind, name, key } = from;
    const read = await readers[kind](name);
    const version = read?.version ?? "";
    const { namespace } = spec;
    objects.set(`${kind}/${name}`, { kind: kind === "secret" ? "Secret" : "ConfigMap", namespace, name, version });
    const value = read?.data[key];
    // One that is gone is not another value: what was deployed with it stays as it is.
    if (read && value !== undefined) values.push({ name: `${kind}/${name}.${key}`, version: digestOf(read, value) });
  }
  return { values, objects: [...objects.values()] };
}

/** With the uid of its object: who may see the Stack's status, but no Secrets, cannot try values against it. */
const digestOf = ({ uid }: Read, value: string): string =>
  createHash("sha256")
    .update(JSON.stringify([uid, value]))
    .digest("hex")
    .slice(0, 12);

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
