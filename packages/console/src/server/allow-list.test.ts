import { describe, expect, test } from "bun:test";

import { allowedRequest } from "./allow-list.ts";

/** The request to the API server; undefined if the console refuses it. The path is as a browser would send it. */
function passed(call: string): string | undefined {
  const [method = "", target = ""] = call.split(" ");
  const { pathname, searchParams } = new URL(`http://console${target}`);
  const request = allowedRequest(method, pathname, searchParams);
  const query = request?.query.toString();
  return request && `${request.method} ${request.path}${query ? `?${query}` : ""}`;
}

const auto = "/apis/auto.pulumi.com/v1alpha1";
const written = "fieldManager=pulumi-console&fieldValidation=Strict";

describe("is passed on:", () => {
  for (const [call, expected] of [
    ["GET /k8s/apis/pulumi.com/v1/stacks", "GET /apis/pulumi.com/v1/stacks?limit=500"],
    ["GET /k8s/apis/pulumi.com/v1/stacks?limit=9999", "GET /apis/pulumi.com/v1/stacks?limit=500"],
    ["GET /k8s/apis/pulumi.com/v1/stacks?limit=7", "GET /apis/pulumi.com/v1/stacks?limit=7"],
    ["GET /k8s/apis/pulumi.com/v1/namespaces/a/stacks", "GET /apis/pulumi.com/v1/namespaces/a/stacks?limit=500"],
    ["GET /k8s/apis/pulumi.com/v1/namespaces/a/stacks/web.1", "GET /apis/pulumi.com/v1/namespaces/a/stacks/web.1"],
    ["GET /k8s/apis/pulumi.com/v1/namespaces/a/programs/p", "GET /apis/pulumi.com/v1/namespaces/a/programs/p"],
    [`GET /k8s${auto}/namespaces/a/updates/u`, `GET ${auto}/namespaces/a/updates/u`],
    [`GET /k8s${auto}/updaterecords?continue=abc`, `GET ${auto}/updaterecords?continue=abc&limit=500`],
    ["GET /k8s/api/v1/namespaces", "GET /api/v1/namespaces?limit=500"],
    ["GET /k8s/api/v1/namespaces/a/pods/p", "GET /api/v1/namespaces/a/pods/p"],
    [
      "GET /k8s/api/v1/namespaces/a/events?fieldSelector=involvedObject.name%3Dweb",
      "GET /api/v1/namespaces/a/events?fieldSelector=involvedObject.name%3Dweb&limit=500",
    ],
    [
      "GET /k8s/api/v1/namespaces/a/pods/p/log?container=pulumi&tailLines=10",
      "GET /api/v1/namespaces/a/pods/p/log?container=pulumi&tailLines=10&limitBytes=16777216",
    ],
    [
      "GET /k8s/apis/coordination.k8s.io/v1/namespaces/o/leases/operator.pulumi.com",
      "GET /apis/coordination.k8s.io/v1/namespaces/o/leases/operator.pulumi.com",
    ],
    [
      "GET /k8s/apis/coordination.k8s.io/v1/leases",
      "GET /apis/coordination.k8s.io/v1/leases?fieldSelector=metadata.name%3Doperator.pulumi.com",
    ],
    [
      "POST /k8s/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
      "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    ],
    [`POST /k8s${auto}/namespaces/a/approvals`, `POST ${auto}/namespaces/a/approvals?${written}`],
    [
      "PATCH /k8s/apis/pulumi.com/v1/namespaces/a/stacks/web",
      `PATCH /apis/pulumi.com/v1/namespaces/a/stacks/web?${written}`,
    ],
  ] as const) {
    test(call, () => expect(passed(call)).toBe(expected));
  }
});

describe("is refused:", () => {
  for (const call of [
    // Other kinds, versions and subresources.
    "GET /k8s/api/v1/secrets",
    "GET /k8s/api/v1/namespaces/a/secrets/s",
    "GET /k8s/api/v1/namespaces/a/configmaps",
    "GET /k8s/api/v1/namespaces/a",
    "GET /k8s/api/v1/nodes",
    "GET /k8s/apis/pulumi.com/v2/stacks",
    "GET /k8s/apis/apps/v1/deployments",
    "GET /k8s/apis/pulumi.com/v1/namespaces/a/stacks/web/status",
    "GET /k8s/api/v1/namespaces/a/pods/p/exec",
    "GET /k8s/api/v1/namespaces/a/pods/p/portforward",
    "GET /k8s/api/v1/namespaces/a/pods/p/proxy",
    "GET /k8s/api/v1/namespaces/a/pods/p/proxy/secrets",
    "GET /k8s/api/v1/namespaces/a/pods/p/attach",
    "GET /k8s/api/v1/pods/p/log",
    "GET /k8s/apis/coordination.k8s.io/v1/namespaces/o/leases/other",
    "GET /k8s/apis/coordination.k8s.io/v1/leases?fieldSelector=metadata.name%3Dother",
    "GET /k8s/apis/coordination.k8s.io/v1/leases/operator.pulumi.com",
    "GET /k8s/",
    "GET /k8s/version",
    "GET /k8s/metrics",
    "GET /k8s/openapi/v3",
    "GET /k8s/apis",
    // Ways around the path.
    "GET /k8s/api/v1/namespaces/a/pods/../secrets",
    "GET /k8s/api/v1/namespaces/a/pods/%2e%2e/secrets",
    "GET /k8s/api/v1/namespaces/a/pods/..%2fsecrets",
    "GET /k8s/api/v1/namespaces/a/pods%2f..%2fsecrets",
    "GET /k8s/api/v1/namespaces/a%2fsecrets%2fs/pods",
    "GET /k8s/api/v1/namespaces/a/pods/p%2flog",
    "GET /k8s/api/v1/namespaces/a/pods/p%00",
    "GET /k8s/api/v1/namespaces/a/pods/p%0d%0aX:1",
    "GET /k8s/api/v1/namespaces/a/pods/p%3fwatch=1",
    "GET /k8s/api/v1/namespaces/a/pods/p%23",
    "GET /k8s/api/v1/namespaces/a/pods/p;x=1",
    "GET /k8s/api/v1/namespaces/a//pods",
    "GET /k8s//api/v1/pods",
    "GET /k8s/api/v1/pods/",
    "GET /k8s/api/v1/namespaces//pods",
    "GET /k8s/api/v1/namespaces/./pods/p",
    "GET /k8s/api/v1/namespaces/a/pods/...",
    "GET /k8s/API/v1/pods",
    "GET /k8s/api/v1/Pods",
    "GET /k8s/api/v1/namespaces/a/pods/P",
    "GET /k8s/apis/pulumi.com/v1/watch/stacks",
    "GET /k8s/api/v1/watch/namespaces/a/pods",
    "GET /k8s/api/v1/proxy/namespaces/a/pods/p",
    `GET /k8s/api/v1/namespaces/a/pods/${"p".repeat(300)}`,
    // Parameters.
    "GET /k8s/apis/pulumi.com/v1/stacks?watch=1",
    "GET /k8s/apis/pulumi.com/v1/stacks?watch=true&limit=1",
    "GET /k8s/apis/pulumi.com/v1/stacks?%77atch=1",
    "GET /k8s/apis/pulumi.com/v1/stacks?limit=1&limit=2",
    "GET /k8s/apis/pulumi.com/v1/stacks?limit=0",
    "GET /k8s/apis/pulumi.com/v1/stacks?limit=-1",
    "GET /k8s/apis/pulumi.com/v1/stacks?allowWatchBookmarks=true",
    "GET /k8s/apis/pulumi.com/v1/stacks?timeoutSeconds=9",
    "GET /k8s/apis/pulumi.com/v1/stacks?labelSelector=a%26watch%3D1",
    "GET /k8s/apis/pulumi.com/v1/stacks?constructor=1",
    "GET /k8s/apis/pulumi.com/v1/stacks?__proto__=1",
    "GET /k8s/apis/pulumi.com/v1/namespaces/a/stacks/web?watch=1",
    "GET /k8s/api/v1/namespaces/a/pods/p/log?follow=true",
    "GET /k8s/api/v1/namespaces/a/pods/p/log?follow=1&container=pulumi",
    "GET /k8s/api/v1/namespaces/a/pods/p/log?insecureSkipTLSVerifyBackend=true",
    "GET /k8s/api/v1/namespaces/a/pods/p/log?container=a/b",
    // Writes.
    "POST /k8s/apis/pulumi.com/v1/namespaces/a/stacks",
    "POST /k8s/apis/authorization.k8s.io/v1/subjectaccessreviews",
    "POST /k8s/apis/authorization.k8s.io/v1/namespaces/a/selfsubjectaccessreviews",
    "POST /k8s/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
    "POST /k8s/api/v1/namespaces/a/serviceaccounts/default/token",
    "POST /k8s/api/v1/namespaces/a/pods/p/exec",
    `POST /k8s${auto}/approvals`,
    `POST /k8s${auto}/namespaces/a/approvals?dryRun=All`,
    `POST /k8s${auto}/namespaces/a/approvals/x`,
    `POST /k8s${auto}/namespaces/a/updates`,
    `PATCH /k8s${auto}/namespaces/a/updates/u`,
    "PATCH /k8s/apis/pulumi.com/v1/namespaces/a/stacks",
    "PATCH /k8s/apis/pulumi.com/v1/namespaces/a/stacks/web/status",
    "PATCH /k8s/apis/pulumi.com/v1/namespaces/a/stacks/web?fieldManager=x",
    "PATCH /k8s/apis/pulumi.com/v1/namespaces/a/stacks/web?force=true",
    "PUT /k8s/apis/pulumi.com/v1/namespaces/a/stacks/web",
    "DELETE /k8s/apis/pulumi.com/v1/namespaces/a/stacks/web",
    "DELETE /k8s/apis/pulumi.com/v1/namespaces/a/stacks",
  ]) {
    test(call.slice(0, 100), () => expect(passed(call)).toBeUndefined());
  }
});
