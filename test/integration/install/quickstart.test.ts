/** `kubectl delete -f install.yaml`, on a separate API server because it deletes the CRDs. */
import { afterAll, beforeAll, expect, test } from "bun:test";

import { startApiServer, waitFor, type ApiServer } from "@pko/testkit";

import { crdDeletionMs, untilServed } from "../api/crd-deletion.ts";
import { testTimeoutMs, quickstart } from "../api/install.ts";

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
  "kubectl delete removes what kubectl apply created",
  async () => {
    await server.kubectl(["apply", "--filename", quickstart]);
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
