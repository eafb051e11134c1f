/**
 * Secrets and ConfigMaps that a Stack refers to: read by name, never listed or watched. Those of the environment are read
 * when an update is about to run; those of the configuration at every reconcile, since a changed value triggers an update.
 */

import type { NormalStack } from "@pko/api";

import type { PolledObject } from "../../inputs/reference-poller.ts";
import { textHash } from "../../shared/digest.ts";
import * as messages from "../messages.ts";
import type { ConfigInput } from "../view.ts";
import type { Readers, ReadObject } from "./readers.ts";

type InputReaders = Pick<Readers, "secret" | "configMap">;

/** One problem for each reference that cannot be resolved. */
export async function findMissingInputs(spec: NormalStack, readers: InputReaders): Promise<string[]> {
  const problems: string[] = [];
  for (const reference of inputReferences(spec)) {
    const { kind, name, key, json } = reference;
    const data = (await readers[kind](name))?.data;
    if (!data) problems.push(messages.inputMissing(reference));
    else if (key !== undefined && data[key] === undefined) problems.push(messages.inputKeyMissing(reference));
    else if (json && !isJson(data[key ?? ""] ?? "")) problems.push(messages.inputNotJson(reference));
  }
  return problems;
}

interface ConfigInputs {
  readonly values: readonly ConfigInput[];
  /** The objects that hold them. */
  readonly objects: readonly PolledObject[];
}

/** The values that the configuration takes from Secrets and ConfigMaps, each with its version. */
export async function readConfigInputs(spec: NormalStack, readers: InputReaders): Promise<ConfigInputs> {
  const values: ConfigInput[] = [];
  const objects = new Map<string, PolledObject>();
  for (const { from } of spec.config) {
    if (from.kind !== "secret" && from.kind !== "configMap") continue;
    const { kind, name, key } = from;
    const read = await readers[kind](name);
    const version = read?.version ?? "";
    const { namespace } = spec;
    objects.set(`${kind}/${name}`, { kind: kind === "secret" ? "Secret" : "ConfigMap", namespace, name, version });
    const value = read?.data[key];
    // A missing value does not count as a change: the deployed resources stay.
    if (read && value !== undefined) values.push({ name: `${kind}/${name}.${key}`, version: valueDigest(read, value) });
  }
  return { values, objects: [...objects.values()] };
}

/** Includes the UID of the object: users who can read the Stack's status, but no Secrets, cannot test guessed values. */
const valueDigest = ({ uid }: ReadObject, value: string): string => textHash(JSON.stringify([uid, value]), 12);

interface InputReference extends messages.InputReference {
  readonly json?: boolean;
}

function inputReferences({ env, envFrom, config }: NormalStack): InputReference[] {
  const found: InputReference[] = envFrom.map(({ kind, name }) => ({
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
