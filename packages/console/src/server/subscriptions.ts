/** The subscriptions of a stream, as the browser sends them. Pure. */
import { isObject } from "@pko/kube";

import { limits, watchedResources, type Subscription } from "../shared/contract.ts";

const name = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

type Tests = Readonly<Record<string, (value: unknown) => boolean>>;

const matches = (pattern: RegExp) => (value: unknown) => typeof value === "string" && pattern.test(value);
const isSeconds = (value: unknown): boolean => Number.isInteger(value) && Number(value) > 0 && Number(value) <= 604_800;

const fields: Readonly<Record<Subscription["kind"], { readonly required: Tests; readonly optional: Tests }>> = {
  watch: {
    required: {
      id: matches(/^[\w\-./:]{1,128}$/),
      kind: () => true,
      resource: (value) => watchedResources.some((each) => each === value),
    },
    optional: {
      namespace: matches(name),
      name: matches(name),
      labelSelector: matches(/^[\w\-./=!,() ]{1,1024}$/),
      // 0 would be answered from a cache of unknown age.
      resourceVersion: matches(/^[1-9]\d{0,19}$/),
    },
  },
  log: {
    required: {
      id: matches(/^[\w\-./:]{1,128}$/),
      kind: () => true,
      namespace: matches(name),
      pod: matches(name),
      container: matches(name),
    },
    optional: { sinceSeconds: isSeconds },
  },
};

/** Undefined if the text is not a list of subscriptions with different IDs. */
export function parseSubscriptions(text: string): readonly Subscription[] | undefined {
  const list = decode(text);
  if (!Array.isArray(list) || list.length === 0 || list.length > limits.subscriptionsPerStream) return undefined;
  if (!list.every(isSubscription)) return undefined;
  return new Set(list.map(({ id }) => id)).size === list.length ? list : undefined;
}

function decode(text: string): unknown {
  if (!/^[\w-]+$/.test(text)) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(text, "base64url").toString("utf8"));
    return value;
  } catch {
    return undefined;
  }
}

function isSubscription(value: unknown): value is Subscription {
  if (!isObject(value)) return false;
  const { kind } = value;
  if (kind !== "watch" && kind !== "log") return false;
  const { required, optional } = fields[kind];
  const known = { ...required, ...optional };
  const isValid = (field: string): boolean => Object.hasOwn(known, field) && known[field]?.(value[field]) === true;
  return Object.keys(value).every(isValid) && Object.keys(required).every((field) => Object.hasOwn(value, field));
}
