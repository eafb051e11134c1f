/** `kubectl delete -f install.yaml`, on an API server of its own: it takes the definitions away. */
import { afterAll, beforeAll, expect, test } from "bun:test";

import { startApiServer, waitFor, type ApiServer } from "@pko/testkit";

import { patience, quickstart } from "../api/install.ts";

let server: ApiServer;

beforeAll(async () => {
  server = await startApiServer();
}, patience);

afterAll(() => server.stop());

async function left(): Promise<string[]> {
  const output = await server.kubectl(["get", "--ignore-not-found", "--output=name", "--filename", quickstart]);
  return output.split("\n").filter((line) => line !== "" && !line.startsWith("namespace/"));
}

test(
  "what kubectl apply made, kubectl delete takes away",
  async () => {
    await server.kubectl(["apply", "--filename", quickstart]);
    // A definition that goes before its kind is served stays for minutes: the API server cannot list what there is to delete.
    const kinds = "stacks,programs,workspaces,updates";
    await waitFor(async () => (await server.kubectl(["get", kinds, "--all-namespaces"])) === "", {
      what: "kinds served",
    });
    // Namespaces end by a controller that only whole clusters have, and their content with them.
    await server.kubectl(["delete", "--wait=false", "--filename", quickstart]);
    // Definitions go once their objects have.
    await waitFor(async () => (await left()).length === 0, { timeoutMs: 30_000, what: "everything to be gone" });
    expect(await left()).toEqual([]);
  },
  patience,
);
