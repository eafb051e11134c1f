/**
 * The bodies that the console passes on. Each is built again from the fields that it may have, so that a script in the
 * page, however it got there, can change nothing else with the user's permissions. Pure.
 */
import {
  approvalKind,
  cancellationRequestAnnotation,
  driftRequestAnnotation,
  ignoreWindowsUntilAnnotation,
  reconcileRequestAnnotation,
} from "@pko/api";
import { isObject } from "@pko/kube";

import type { ApiRequest } from "./allow-list.ts";

/** Undefined if the body has a field that it may not have. */
export function allowedBody({ bodyKind, ref }: ApiRequest, text: string): object | undefined {
  const value = parsed(text);
  if (!isObject(value) || bodyKind === undefined) return undefined;
  switch (bodyKind) {
    case "accessReview":
      return accessReview(value);
    case "approval":
      return approval(value, ref?.namespace ?? "");
    case "stackPatch":
      return stackPatch(value);
  }
}

function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    return undefined;
  }
}

type Fields = Readonly<Record<string, unknown>>;

/** Whether the object has only these fields, each with an accepted value. */
function hasOnly(value: unknown, fields: Readonly<Record<string, (value: unknown) => boolean>>): value is Fields {
  if (!isObject(value)) return false;
  return Object.entries(value).every(([name, each]) => Object.hasOwn(fields, name) && fields[name]?.(each) === true);
}

const isText = (value: unknown): boolean => typeof value === "string" && value.length <= 4096;
const is = (expected: string) => (value: unknown) => value === expected;
const isAnything = (): boolean => true;

const attributes = {
  namespace: isText,
  verb: isText,
  group: isText,
  version: isText,
  resource: isText,
  subresource: isText,
  name: isText,
};

function accessReview(value: Fields): object | undefined {
  const { apiVersion, kind } = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview" };
  if (!hasOnly(value, { apiVersion: is(apiVersion), kind: is(kind), spec: isObject })) return undefined;
  const { spec } = value;
  if (!hasOnly(spec, { resourceAttributes: (each) => hasOnly(each, attributes) })) return undefined;
  return { apiVersion, kind, spec };
}

const approvalSpec = {
  updateName: isText,
  updateUid: isText,
  digest: isText,
  decision: isText,
  decidedBy: isText,
  reason: isText,
};

/** The admission policy checks that `decidedBy` is the user. */
function approval(value: Fields, namespace: string): object | undefined {
  const { apiVersion, kind } = approvalKind;
  const isMetadata = (each: unknown): boolean =>
    hasOnly(each, { name: isText, generateName: isText, namespace: is(namespace) });
  const fields = { apiVersion: is(apiVersion), kind: is(kind), metadata: isMetadata, spec: isAnything };
  if (!hasOnly(value, fields) || !hasOnly(value["spec"], approvalSpec)) return undefined;
  const { metadata, spec } = value;
  return { apiVersion, kind, metadata, spec };
}

/** The annotations by which users request something of a Stack. */
const requestAnnotations = [
  reconcileRequestAnnotation,
  cancellationRequestAnnotation,
  driftRequestAnnotation,
  ignoreWindowsUntilAnnotation,
];

function stackPatch(value: Fields): object | undefined {
  const isAnnotations = (each: unknown): boolean =>
    hasOnly(
      each,
      Object.fromEntries(requestAnnotations.map((name) => [name, (text) => text === null || isText(text)])),
    );
  const isSuspend = (each: unknown): boolean => each === null || typeof each === "boolean";
  const fields = {
    metadata: (each: unknown) => hasOnly(each, { annotations: isAnnotations }),
    spec: (each: unknown) => hasOnly(each, { suspend: isSuspend }),
  };
  if (!hasOnly(value, fields)) return undefined;
  const { metadata, spec } = value;
  return { ...(metadata !== undefined && { metadata }), ...(spec !== undefined && { spec }) };
}
