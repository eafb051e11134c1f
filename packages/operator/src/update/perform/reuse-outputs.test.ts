import { expect, test } from "bun:test";
import { updateKind, type Update } from "@pko/api";
import { ApiError, type ApiObject, type Client, type KubeObject, type Resource } from "@pko/kube";
import type { Secret } from "kubernetes-types/core/v1";

import { reuseOutputs } from "./reuse-outputs.ts";

const { apiVersion, kind } = updateKind;
const first: Update = { apiVersion, kind, metadata: { namespace: "team", name: "web-1", uid: "uid-1" } };
const second: Update = { apiVersion, kind, metadata: { namespace: "team", name: "web-2", uid: "uid-2" } };
const former = { updateName: "web-1", updateUid: "uid-1", secretName: "web-1-stack-outputs" };
const secret: ApiObject<Secret> = {
  apiVersion: "v1",
  kind: "Secret",
  metadata: {
    namespace: "team",
    name: former.secretName,
    ownerReferences: [{ apiVersion, kind, name: "web-1", uid: "uid-1" }],
  },
  immutable: true,
  data: { url: "eA==" },
};

/** The second Update has the same outputs; the API server answers the patch of the Secret's owners with this status. */
async function reuseWith(status: number, patched = secret): Promise<string | undefined> {
  let stored = secret;
  const find = ({ kind: wanted }: Resource): Promise<KubeObject> =>
    Promise.resolve(wanted === "Secret" ? stored : first);
  const patch = async (): Promise<void> => {
    stored = patched;
    if (status !== 200) throw new ApiError("patch the Secret", { status, reason: "", message: "denied" });
  };
  const client = { find, patch } as unknown as Client;
  return await reuseOutputs({ client, signal: new AbortController().signal, update: second }, secret, former);
}

test("the Secret of an earlier Update with the same outputs is used", async () => {
  expect(await reuseWith(200)).toBe("web-1-stack-outputs");
});

test.each([400, 403, 404, 409, 413, 422])(
  "an Update that may not become an owner of the Secret (%i) needs its own",
  async (status) => {
    expect(await reuseWith(status)).toBeUndefined();
  },
);

test("a conflict with the Update's own patch, whose response was lost, is no conflict", async () => {
  const { ownerReferences = [] } = secret.metadata;
  const owners = [...ownerReferences, { apiVersion, kind, name: "web-2", uid: "uid-2" }];
  const patched = { ...secret, metadata: { ...secret.metadata, ownerReferences: owners } };
  expect(await reuseWith(409, patched)).toBe("web-1-stack-outputs");
});

test("an error that may be temporary is retried", async () => {
  expect(await reuseWith(500).catch((error: unknown) => error)).toBeInstanceOf(ApiError);
});
