import { describe, expect, test } from "bun:test";

import { encodeSubscriptions, limits, type Subscription } from "../shared/contract.ts";
import { parseSubscriptions } from "./subscriptions.ts";

const watch = { id: "a", kind: "watch", resource: "stacks" } as const;
const log = { id: "b", kind: "log", namespace: "a", pod: "web-workspace-0", container: "pulumi" } as const;
const parse = (value: unknown) => parseSubscriptions(encodeSubscriptions(value as Subscription[]));

describe("accepts", () => {
  for (const list of [
    [watch],
    [watch, log],
    [{ ...watch, namespace: "a", name: "web", labelSelector: "a=b,c in (d, e)", resourceVersion: "12" }],
    [{ ...log, sinceSeconds: 60 }],
  ]) {
    test(JSON.stringify(list), () => expect(parse(list)).toEqual(list as Subscription[]));
  }
});

describe("refuses", () => {
  for (const list of [
    [],
    {},
    [null],
    [watch, watch],
    [{ ...watch, resource: "secrets" }],
    [{ ...watch, kind: "exec" }],
    [{ ...watch, namespace: "a/../b" }],
    [{ ...watch, namespace: "" }],
    [{ ...watch, name: "a,metadata.namespace=b" }],
    [{ ...watch, resourceVersion: "0" }],
    [{ ...watch, resourceVersion: 12 }],
    [{ ...watch, fieldSelector: "a=b" }],
    [{ ...watch, labelSelector: "a&watch=1" }],
    [{ ...watch, id: "a\nb" }],
    [{ ...watch, constructor: "a" }],
    [{ ...log, pod: "a/exec" }],
    [{ ...log, sinceSeconds: -1 }],
    [{ ...log, sinceSeconds: "60" }],
    [{ id: "b", kind: "log", namespace: "a", pod: "p" }],
    [{ ...log, follow: false }],
    Array.from({ length: limits.subscriptionsPerStream + 1 }, (_, at) => ({ ...watch, id: String(at) })),
  ]) {
    test(JSON.stringify(list).slice(0, 100), () => expect(parse(list)).toBeUndefined());
  }

  test("what is not base64url of JSON", () => {
    expect(["", "%", "e30=", "abc"].map((text) => parseSubscriptions(text))).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});
