/**
 * A stack's settings file (Pulumi.<stack>.yaml): the repository's file, merged with the configuration, environments and
 * keys of this workspace. It is rewritten each time, so removed configuration disappears.
 *
 * The agent writes it without the CLI; only secrets are encrypted by the CLI (secrets.ts). The YAML is parsed without
 * scalar types, so that untouched values are written back unchanged.
 */
import { Document, isMap, isScalar, isSeq, parseDocument, Scalar, YAMLMap, YAMLSeq, type Node } from "yaml";
import { done, failed, type Outcome } from "../../outcome.ts";
import { qualified, type ConfigKey } from "./config-key.ts";

/** How the stack's secrets are encrypted: written by `stack init`, or in the repository. */
export interface StackKeys {
  readonly secretsprovider?: string;
  readonly encryptedkey?: string;
  readonly encryptionsalt?: string;
}

export type SettingValue =
  { readonly kind: "plain"; readonly value: unknown } | { readonly kind: "secure"; readonly ciphertext: string };

interface Setting {
  readonly key: ConfigKey;
  readonly value: SettingValue;
}

export interface SettingsLayer {
  readonly project: string;
  readonly keys: StackKeys;
  readonly settings: readonly Setting[];
  readonly environments: readonly string[];
}

export const keyNames = ["secretsprovider", "encryptedkey", "encryptionsalt"] as const;
const maxDepth = 64;
const yamlOptions = { lineWidth: 0, flowCollectionPadding: false } as const;

export function renderSettings(base: string | undefined, layer: SettingsLayer): Outcome<string> {
  const document = readDocument(base);
  if (!document.ok) return document;
  const root = document.value.contents;
  if (!isMap(root))
    return failed("configInvalid", "the stack's settings file in the repository is not a YAML map; correct it");
  for (const name of keyNames) {
    const key = layer.keys[name];
    if (key !== undefined && !root.has(name)) root.set(name, quoted(key));
  }
  if (layer.settings.length > 0) {
    const config = ensureMap(root, "config");
    if (!config)
      return failed(
        "configInvalid",
        "config in the stack's settings file in the repository is not a YAML map; correct it",
      );
    for (const setting of layer.settings) {
      const set = applySetting(config, setting, layer.project);
      if (!set.ok) return set;
    }
  }
  if (layer.environments.length > 0) {
    const added = addEnvironments(root, layer.environments);
    if (!added.ok) return added;
  }
  return writeDocument(document.value);
}

/** Fails if an alias refers to nothing: also to a value that the configuration of this workspace has replaced. */
function writeDocument(document: Document): Outcome<string> {
  try {
    return done(document.toString(yamlOptions));
  } catch {
    return failed(
      "configInvalid",
      "the stack's settings file in the repository has a YAML alias (*name) without its anchor (&name), or the Stack's configuration replaces the value with the anchor; write the value out instead of the alias",
    );
  }
}

export function readStackKeys(text: string | undefined): StackKeys {
  const document = readDocument(text);
  if (!document.ok || !isMap(document.value.contents)) return {};
  const root = document.value.contents;
  const found = keyNames.flatMap((name) => {
    const value = root.get(name);
    return typeof value === "string" && value !== "" ? [[name, value] as const] : [];
  });
  return Object.fromEntries(found);
}

/** The repository's keys if it has them; otherwise the stack's known keys, if they are from the same provider. */
export function chooseKeys(repository: StackKeys, known: StackKeys): StackKeys {
  if (repository.encryptedkey !== undefined || repository.encryptionsalt !== undefined) return repository;
  const provider = repository.secretsprovider;
  return provider === undefined || provider === known.secretsprovider ? { ...repository, ...known } : repository;
}

/** The ciphertext that the CLI wrote for a key. */
export function readCiphertext(text: string, key: string): string | undefined {
  const document = readDocument(text);
  const value: unknown = document.ok ? document.value.getIn(["config", key, "secure"]) : undefined;
  return typeof value === "string" ? value : undefined;
}

function readDocument(text: string | undefined): Outcome<Document> {
  const document = parseDocument(text ?? "", { schema: "failsafe", logLevel: "silent" });
  const [error] = document.errors;
  if (error) {
    return failed(
      "configInvalid",
      `the stack's settings file in the repository is not valid YAML: ${error.message.split("\n", 1)[0] ?? ""}`,
    );
  }
  if (document.contents === null || (isScalar(document.contents) && document.contents.value === "")) {
    return done(new Document(new YAMLMap(), { schema: "failsafe" }));
  }
  return done(document);
}

function ensureMap(root: YAMLMap, name: string): YAMLMap | undefined {
  const found = root.get(name, true);
  if (isMap(found)) return found;
  if (found !== undefined && !(isScalar(found) && isEmpty(found))) return undefined;
  const created = new YAMLMap();
  root.set(name, created);
  return created;
}

function isEmpty(scalar: Scalar): boolean {
  return scalar.value === null || scalar.value === "" || scalar.value === "null" || scalar.value === "~";
}

function applySetting(config: YAMLMap, { key, value }: Setting, project: string): Outcome<undefined> {
  if (value.kind === "plain" && hasReservedMap(value.value, 0)) {
    return failed(
      "configInvalid",
      `the configuration value ${key.key} is nested too deeply, or has a map whose only key is "secure", which is reserved`,
    );
  }
  const node = value.kind === "secure" ? secureNode(value.ciphertext) : toNode(value.value, key.path.length > 0);
  const name = existingName(config, key.key, project);
  const [first, ...rest] = key.path;
  if (first === undefined) {
    config.set(name, node);
    return done(undefined);
  }
  const found = config.get(name, true);
  // Like the CLI: on the first level, a value that is not a container is replaced.
  const container = isContainer(found) ? found : newContainer(first);
  config.set(name, container);
  const problem = setPath(container, [first, ...rest], node);
  return problem === undefined
    ? done(undefined)
    : failed("configInvalid", `the configuration value ${key.key} cannot be set: ${problem}`);
}

/** The key's name in the file, which may have its old form. */
function existingName(config: YAMLMap, key: string, project: string): string {
  for (const pair of config.items) {
    const name = isScalar(pair.key) ? String(pair.key.value) : "";
    if (qualified(name, project) === key) return name;
  }
  return key;
}

type Container = YAMLMap | YAMLSeq;

function isContainer(node: unknown): node is Container {
  return isSeq(node) || (isMap(node) && !(node.items.length === 1 && node.has("secure")));
}

function newContainer(segment: string | number): Container {
  if (typeof segment === "string") return new YAMLMap();
  const list = new YAMLSeq();
  for (let index = 0; index <= segment && index < 10_000; index += 1) list.add(plain("null"));
  return list;
}

function setPath(container: Container, path: readonly (string | number)[], node: Node): string | undefined {
  const [segment, ...rest] = path;
  if (segment === undefined) return undefined;
  const problem = checkSegment(container, segment, rest.length === 0 ? node : undefined);
  if (problem !== undefined) return problem;
  if (rest.length === 0) {
    container.set(segment, node);
    return undefined;
  }
  const found: unknown = container.get(segment, true);
  const missing = found === undefined || (isScalar(found) && isEmpty(found));
  const inner = missing ? newContainer(rest[0] ?? "") : found;
  if (!isContainer(inner)) return `${segment} is not a map or a list`;
  if (missing) container.set(segment, inner);
  return setPath(inner, rest, node);
}

function checkSegment(container: Container, segment: string | number, leaf: Node | undefined): string | undefined {
  if (isSeq(container)) {
    if (typeof segment !== "number") return `the key of a list must be a number, not ${segment}`;
    return segment > container.items.length ? `the index ${segment} is beyond the end of its list` : undefined;
  }
  if (typeof segment !== "string") return `the key of a map must be a name, not ${segment}`;
  const isReserved = segment === "secure" && container.items.length === 0 && isScalar(leaf);
  return isReserved ? `a map whose only key is "secure" is reserved` : undefined;
}

function toNode(value: unknown, isPathValue: boolean): Node {
  if (typeof value === "string") {
    // Within an object the CLI converts "true" to true and "12" to 12.
    const scalar = isPathValue ? coerced(value) : undefined;
    return scalar === undefined ? quoted(value) : plain(scalar);
  }
  if (Array.isArray(value)) {
    const list = new YAMLSeq();
    for (const item of value) list.add(toNode(item, false));
    return list;
  }
  if (typeof value === "object" && value !== null) {
    const map = new YAMLMap();
    for (const [key, item] of Object.entries(value)) map.add({ key: quoted(key), value: toNode(item, false) });
    return map;
  }
  return plain(JSON.stringify(value));
}

const smallest = -(2n ** 63n);
const largest = 2n ** 64n - 1n;

/** By the CLI's rules: booleans, and 64-bit integers without a leading zero. */
function coerced(text: string): string | undefined {
  if (text === "true" || text === "false") return text;
  if (!/^[+-]?\d{1,20}$/.test(text) || (text.length > 1 && text.startsWith("0"))) return undefined;
  const number = BigInt(text.replace("+", ""));
  return number >= smallest && number <= largest ? String(number) : undefined;
}

function hasReservedMap(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (depth > maxDepth) return true;
  const entries = Object.entries(value);
  const [only] = entries;
  if (!Array.isArray(value) && entries.length === 1 && only?.[0] === "secure" && typeof only[1] === "string")
    return true;
  return entries.some(([, inner]) => hasReservedMap(inner, depth + 1));
}

function secureNode(ciphertext: string): YAMLMap {
  const map = new YAMLMap();
  map.set("secure", quoted(ciphertext));
  return map;
}

function quoted(text: string): Scalar {
  const scalar = new Scalar(text);
  scalar.type = Scalar.QUOTE_DOUBLE;
  return scalar;
}

function plain(text: string): Scalar {
  const scalar = new Scalar(text);
  scalar.type = Scalar.PLAIN;
  return scalar;
}

/** Like `pulumi config env add`: to the list, or to the imports of an inline environment. */
function addEnvironments(root: YAMLMap, environments: readonly string[]): Outcome<undefined> {
  const found = root.get("environment", true);
  let list: unknown = found;
  if (isMap(found)) list = ensureList(found, "imports");
  else if (found === undefined || (isScalar(found) && isEmpty(found))) list = ensureList(root, "environment");
  if (!isSeq(list))
    return failed(
      "configInvalid",
      "environment in the stack's settings file in the repository is neither a list nor a map with imports; correct it",
    );
  const names = new Set(list.items.map((item) => (isScalar(item) ? item.value : undefined)));
  for (const name of environments) {
    if (!names.has(name)) list.add(quoted(name));
    names.add(name);
  }
  return done(undefined);
}

function ensureList(map: YAMLMap, name: string): unknown {
  const found = map.get(name, true);
  if (found !== undefined && !(isScalar(found) && isEmpty(found))) return found;
  const created = new YAMLSeq();
  map.set(name, created);
  return created;
}
