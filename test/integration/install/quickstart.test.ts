/** `kubectl delete -f install.yaml`, on an API server of its own: it takes the definitions away. */
import { afterAll, beforeAll, expect, test } from "bun:test";

import { startApiServer, type ApiServer } from "@pko/testkit";

import { patience, quickstart } from "../api/install.ts";

let server: ApiServer;

beforeAll(async () => {
  server = await startApiServer();
}, patience);

afterAll(() => server.stop());

test(
  "what kubectl apply made, kubectl delete takes away",
  async () => {
    await server.kubectl(["apply", "--filename", quickstart]);
    // Namespaces end by a controller that only whole clusters have, and their content with them.
    await server.kubectl(["delete", "--wait=false", "--filename", quickstart]);
    const output = await server.kubectl(["delete", "--ignore-not-found", "--wait=false", "--filename", quickstart]);
    const left = output.split("\n").filter((line) => line !== "" && !line.startsWith("namespace "));
    expect(left).toEqual([]);
  },
  patience,
);
