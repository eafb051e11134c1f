import { expect, setDefaultTimeout, test } from "bun:test";

import { sharedApiServer } from "./shared-api-server.ts";

// The first test of a run that needs the API server waits for its start, on a machine that may be busy.
setDefaultTimeout(60_000);

test("the shared API server is one and the same for every test", async () => {
  const server = await sharedApiServer();
  expect(await sharedApiServer()).toBe(server);
});

test("kubectl speaks to it as an admin", async () => {
  const { kubectl } = await sharedApiServer();
  const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: typed-by-a-user}";
  expect(await kubectl(["apply", "-f", "-"], { input: manifest })).toContain("typed-by-a-user created");
});

test("kubectl that fails tells why", async () => {
  const { kubectl } = await sharedApiServer();
  const error: unknown = await kubectl(["get", "configmap", "absent"]).catch((error: unknown) => error);
  expect(String(error)).toContain('configmaps "absent" not found');
});
