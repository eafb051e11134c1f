import { describe, expect, test } from "bun:test";

import { allowedRequest, type ApiRequest } from "./allow-list.ts";
import { allowedBody } from "./bodies.ts";

function requestFor(method: string, path: string): ApiRequest {
  const request = allowedRequest(method, `/k8s${path}`, new URLSearchParams());
  if (!request) throw new Error(`${path} is not allowed`);
  return request;
}

const patch = requestFor("PATCH", "/apis/pulumi.com/v1/namespaces/a/stacks/web");
const approval = requestFor("POST", "/apis/auto.pulumi.com/v1alpha1/namespaces/a/approvals");
const review = requestFor("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");

const approvalKind = { apiVersion: "auto.pulumi.com/v1alpha1", kind: "Approval" };
const reviewKind = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview" };
const spec = { updateName: "web-1", updateUid: "u", digest: "d", decision: "Approve", decidedBy: "jane" };

describe("is passed on as it is:", () => {
  for (const [name, request, body] of [
    ["a suspended Stack", patch, { spec: { suspend: true } }],
    ["a resumed Stack", patch, { spec: { suspend: null } }],
    ["a requested update", patch, { metadata: { annotations: { "pulumi.com/reconciliation-request": "now" } } }],
    ["a removed annotation", patch, { metadata: { annotations: { "pulumi.com/drift-request": null } } }],
    ["an Approval", approval, { ...approvalKind, metadata: { generateName: "web-1-", namespace: "a" }, spec }],
    ["an access review", review, { ...reviewKind, spec: { resourceAttributes: { verb: "get", resource: "stacks" } } }],
  ] as const) {
    test(name, () => expect(allowedBody(request, JSON.stringify(body))).toEqual(body));
  }
});

describe("is refused:", () => {
  for (const [name, request, body] of [
    ["another field of the spec", patch, '{"spec":{"suspend":true,"stack":"prod"}}'],
    ["the service account of a Stack", patch, '{"spec":{"serviceAccountName":"admin"}}'],
    ["a null spec", patch, '{"spec":null}'],
    ["the status", patch, '{"status":{}}'],
    ["a label", patch, '{"metadata":{"labels":{"a":"b"}}}'],
    ["the finalizers", patch, '{"metadata":{"finalizers":[]}}'],
    ["another annotation", patch, '{"metadata":{"annotations":{"example.com/a":"b"}}}'],
    ["an annotation of the operator", patch, '{"metadata":{"annotations":{"pulumi.com/trigger":"{}"}}}'],
    ["all annotations", patch, '{"metadata":{"annotations":null}}'],
    ["an annotation that is an object", patch, '{"metadata":{"annotations":{"pulumi.com/drift-request":{}}}}'],
    ["a suspend that is a text", patch, '{"spec":{"suspend":"yes"}}'],
    ["a JSON patch", patch, '[{"op":"remove","path":"/spec"}]'],
    ["a prototype", patch, '{"__proto__":{"spec":{}}}'],
    ["a constructor", patch, '{"constructor":{}}'],
    ["an inherited name of a field", patch, '{"metadata":{"annotations":{"toString":"a"}}}'],
    ["text", patch, "suspend"],
    ["nothing", patch, ""],
    [
      "an Approval in another namespace",
      approval,
      JSON.stringify({ ...approvalKind, metadata: { namespace: "b" }, spec }),
    ],
    [
      "an Approval with an owner",
      approval,
      JSON.stringify({ ...approvalKind, metadata: { name: "x", ownerReferences: [] }, spec }),
    ],
    ["an Approval with a status", approval, JSON.stringify({ ...approvalKind, metadata: {}, spec, status: {} })],
    ["another kind", approval, JSON.stringify({ ...approvalKind, kind: "Update", metadata: {}, spec })],
    ["an Approval without a spec", approval, JSON.stringify({ ...approvalKind, metadata: {} })],
    ["a review of another user", review, JSON.stringify({ ...reviewKind, spec: { user: "root" } })],
    [
      "a review of a path",
      review,
      JSON.stringify({ ...reviewKind, spec: { nonResourceAttributes: { path: "/metrics" } } }),
    ],
  ] as const) {
    test(name, () => expect(allowedBody(request, body)).toBeUndefined());
  }
});
