import { describe, expect, test } from "bun:test";

import { requestInfo, type RequestInfo } from "./request-info.ts";

const core = { group: "", version: "v1" };

describe("verb and resource of a request", () => {
  const cases: [string, RequestInfo][] = [
    ["GET /api/v1/pods", { ...core, verb: "list", resource: "pods" }],
    ["GET /api/v1/pods?watch=true", { ...core, verb: "watch", resource: "pods" }],
    ["GET /api/v1/pods?watch=1", { ...core, verb: "watch", resource: "pods" }],
    ["GET /api/v1/namespaces", { ...core, verb: "list", resource: "namespaces" }],
    ["GET /api/v1/namespaces/a", { ...core, verb: "get", resource: "namespaces", name: "a" }],
    [
      "PUT /api/v1/namespaces/a/finalize",
      { ...core, verb: "update", resource: "namespaces", name: "a", subresource: "finalize" },
    ],
    ["GET /api/v1/namespaces/a/pods/p", { ...core, verb: "get", resource: "pods", namespace: "a", name: "p" }],
    [
      "GET /api/v1/namespaces/a/pods/p/log",
      { ...core, verb: "get", resource: "pods", namespace: "a", name: "p", subresource: "log" },
    ],
    ["POST /api/v1/namespaces/a/pods", { ...core, verb: "create", resource: "pods", namespace: "a" }],
    ["DELETE /api/v1/namespaces/a/pods", { ...core, verb: "deletecollection", resource: "pods", namespace: "a" }],
    [
      "PATCH /apis/pulumi.com/v1/namespaces/a/stacks/s/status",
      {
        group: "pulumi.com",
        version: "v1",
        verb: "patch",
        resource: "stacks",
        namespace: "a",
        name: "s",
        subresource: "status",
      },
    ],
    ["GET /readyz", { group: "", version: "", verb: "list", resource: "" }],
  ];
  for (const [line, expected] of cases) {
    test(line, () => {
      const [method = "", target = ""] = line.split(" ");
      const { pathname: path, searchParams: query } = new URL(target, "https://x");
      expect(requestInfo({ method, path, query, contentType: "" })).toEqual(expected);
    });
  }

  test("an apply is distinguished from other patches", () => {
    const line = { method: "PATCH", path: "/api/v1/nodes/n", query: new URLSearchParams() };
    expect(requestInfo({ ...line, contentType: "application/apply-patch+yaml" }).verb).toBe("apply");
  });
});
