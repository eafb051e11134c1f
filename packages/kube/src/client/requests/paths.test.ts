import { describe, expect, test } from "bun:test";

import { builtin } from "../builtin.ts";
import { collectionPath, objectPath, queryString } from "./paths.ts";

test("the core group and other groups have different roots", () => {
  expect(collectionPath(builtin.pods)).toBe("/api/v1/pods");
  expect(collectionPath(builtin.statefulSets, "a")).toBe("/apis/apps/v1/namespaces/a/statefulsets");
  expect(collectionPath(builtin.namespaces, "ignored")).toBe("/api/v1/namespaces");
});

test("paths of objects and subresources", () => {
  expect(objectPath(builtin.pods, { name: "p", namespace: "a" })).toBe("/api/v1/namespaces/a/pods/p");
  expect(objectPath(builtin.pods, { name: "p", namespace: "a" }, "log")).toBe("/api/v1/namespaces/a/pods/p/log");
  expect(objectPath(builtin.namespaces, { name: "a" })).toBe("/api/v1/namespaces/a");
  expect(objectPath(builtin.pods, { name: "system:x", namespace: "a" })).toEndWith("/pods/system%3Ax");
});

describe("names that would address something else are rejected", () => {
  const refs = [
    { name: "", namespace: "a" },
    { name: "..", namespace: "a" },
    { name: "x/y", namespace: "a" },
    { name: "x", namespace: "" },
    { name: "x", namespace: "../kube-system" },
    { name: "x" },
  ];
  for (const ref of refs) {
    test(JSON.stringify(ref), () => expect(() => objectPath(builtin.pods, ref)).toThrow(TypeError));
  }
});

test("parameters that are not set are left out", () => {
  expect(queryString({ a: 1, b: undefined, c: "x y&z", d: true })).toBe("?a=1&c=x+y%26z&d=true");
  expect(queryString({ a: undefined })).toBe("");
});
