import { expect, test } from "bun:test";
import { ApiError, type KubeObject, type StatusCause } from "@pko/kube";

import { set, view } from "../testing/views.ts";
import { applyObjects } from "./objects.ts";
import type { Performer, WorkspacePerformed } from "./owned.ts";

const observed = view(set());

const invalid = (message: string, causes: readonly StatusCause[] = []): ApiError =>
  new ApiError("PATCH statefulsets", { status: 422, reason: "Invalid", message, causes });

/** The API server rejects the write with `error`. */
async function apply(error: ApiError): Promise<{ kind: WorkspacePerformed["kind"]; deleted: number }> {
  const { workspace, inputs, statefulSet } = observed;
  if (!inputs?.pod.ok) throw new Error("the view has no objects");
  const { name = "", uid = "" } = workspace.metadata;
  const owner = { apiVersion: workspace.apiVersion, kind: workspace.kind, name, uid, controller: true };
  const owned: KubeObject = {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name: "web-workspace", uid: statefulSet?.uid ?? "", resourceVersion: "1", ownerReferences: [owner] },
  };
  let deleted = 0;
  const client = {
    find: async (_: unknown, ref: { readonly name: string }) => (ref.name === name ? workspace : owned),
    list: async () => ({ items: [] }),
    create: async () => owned,
    apply: async () => {
      throw error;
    },
    delete: async () => void deleted++,
  };
  const { kind } = await applyObjects(
    { client } as unknown as Performer,
    { kind: "applyObjects", objects: inputs.pod.objects },
    { view: observed, signal: new AbortController().signal },
  );
  return { kind, deleted };
}

test.each([
  ["up to Kubernetes 1.36", invalid("spec: Forbidden: updates to statefulset spec for fields other than 'replicas'")],
  ["from 1.37 on", invalid("no", [{ field: "spec.serviceName", message: 'Invalid value: "a": field is immutable' }])],
])("a StatefulSet that differs in an immutable field is deleted: error of the API server %s", async (_, error) => {
  expect(await apply(error)).toEqual({ kind: "done", deleted: 1 });
});

test("an immutable field of the Service does not delete the StatefulSet", async () => {
  const error = invalid("no", [{ field: "spec.clusterIPs", message: "Invalid value: field is immutable" }]);
  expect(await apply(error)).toEqual({ kind: "replan", deleted: 0 });
});
