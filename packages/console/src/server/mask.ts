/** Masks secrets that users wrote into objects in plain text. Everything that the server sends of an object passes here. Pure. */
import { isObject } from "@pko/kube";

export const secretMask = "[secret]";

/** It repeats the object with its secrets. */
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";

/** An object, or a list of objects, as the API server sends it. */
export function maskResponse(response: unknown): unknown {
  if (!isObject(response)) return response;
  const { items } = response;
  return Array.isArray(items) ? { ...response, items: items.map(maskResponse) } : maskSecrets(response);
}

export function maskSecrets<T extends object>(object: T): T {
  const { metadata, spec } = object as { metadata?: unknown; spec?: unknown };
  return {
    ...object,
    ...(isObject(metadata) && { metadata: withoutLastApplied(metadata) }),
    ...(isObject(spec) && { spec: maskSpec(spec) }),
  };
}

type Fields = Record<string, unknown>;

function withoutLastApplied(metadata: Fields): Fields {
  const { annotations } = metadata;
  if (!isObject(annotations) || !Object.hasOwn(annotations, lastApplied)) return metadata;
  const { [lastApplied]: _, ...rest } = annotations;
  return { ...metadata, annotations: rest };
}

/** Of a Stack, or of a Workspace, whose `stacks` have the configuration of Stacks. */
function maskSpec(spec: Fields): Fields {
  const { secrets, secretsRef, gitAuth, stacks } = spec;
  return {
    ...spec,
    ...(isObject(secrets) && { secrets: mapValues(secrets, () => secretMask) }),
    ...(isObject(secretsRef) && { secretsRef: maskLiterals(secretsRef) }),
    ...(isObject(gitAuth) && { gitAuth: maskLiterals(gitAuth) }),
    ...(Array.isArray(stacks) && { stacks: stacks.map(maskConfiguration) }),
  };
}

/** Of references at any depth. */
function maskLiterals(references: Fields): Fields {
  const { literal, ...others } = mapValues(references, (each) => (isObject(each) ? maskLiterals(each) : each));
  const isLiteral = isObject(literal) && typeof literal["value"] === "string";
  return literal === undefined ? others : { ...others, literal: isLiteral ? { value: secretMask } : literal };
}

function maskConfiguration(stack: unknown): unknown {
  if (!isObject(stack) || !Array.isArray(stack["config"])) return stack;
  const isSecret = (item: unknown): item is Fields => isObject(item) && item["secret"] === true && "value" in item;
  const config = stack["config"].map((item: unknown) => (isSecret(item) ? { ...item, value: secretMask } : item));
  return { ...stack, config };
}

const mapValues = (object: Fields, change: (value: unknown) => unknown): Fields =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));
