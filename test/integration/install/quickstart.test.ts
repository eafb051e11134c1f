/** `kubectl apply -k` and `kubectl delete -f install.yaml`, on a separate API server because the latter deletes the CRDs. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { dirname } from "node:path";

import { imageTag } from "@pko/api";
import { quickstartObjects } from "@pko/install";
import { startApiServer, waitFor, type ApiServer } from "@pko/testkit";

import { crdDeletionMs, untilServed } from "../api/crd-deletion.ts";
import { manifestsIn } from "../../e2e/install/helm.ts";
import { pathTo, quickstart, testTimeoutMs } from "../api/install.ts";

let server: ApiServer;

beforeAll(async () => {
  server = await startApiServer();
}, testTimeoutMs);

afterAll(() => server.stop());

async function listObjects(): Promise<string[]> {
  const output = await server.kubectl(["get", "--ignore-not-found", "--output=name", "--filename", quickstart]);
  return output.split("\n").filter((line) => line !== "" && !line.startsWith("namespace/"));
}

test(
  "kubectl delete removes what kubectl apply -k created",
  async () => {
    await server.kubectl(["apply", "--kustomize", dirname(quickstart)]);
    expect((await listObjects()).length).toBe(quickstartObjects().length - 1);
    await untilServed(server);
    // Deleting a namespace needs a controller, which this API server does not have.
    await server.kubectl(["delete", "--wait=false", "--filename", quickstart]);
    await waitFor(async () => (await listObjects()).length === 0, {
      timeoutMs: crdDeletionMs,
      what: "everything to be deleted",
    });
    expect(await listObjects()).toEqual([]);
  },
  testTimeoutMs + crdDeletionMs,
);

test("the overlay with Kustomize uses the same image for the operator and the agent", async () => {
  const output = await server.kubectl(["kustomize", pathTo("../../../examples/kustomize")]);
  const deployment = manifestsIn(output).find(({ kind }) => kind === "Deployment");
  const image = `registry.example.com/pulumi-kubernetes-operator:${imageTag}`;
  const env = expect.arrayContaining([
    { name: "OPERATOR_AGENT_IMAGE", value: image },
    { name: "OPERATOR_AGENT_IMAGE_PULL_POLICY", value: "IfNotPresent" },
  ]) as unknown;
  expect(deployment?.spec).toMatchObject({
    replicas: 2,
    template: { spec: { containers: [{ name: "manager", image, env }] } },
  });
});
