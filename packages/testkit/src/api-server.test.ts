import { expect, setDefaultTimeout, test } from "bun:test";

import { sharedApiServer } from "./shared-api-server.ts";

// The first test that needs the API server waits until it has started, which takes long on a busy machine.
setDefaultTimeout(180_000);

test("all tests share one API server", async () => {
  const server = await sharedApiServer();
  expect(await sharedApiServer()).toBe(server);
});

test("kubectl is authenticated as a cluster admin", async () => {
  const { kubectl } = await sharedApiServer();
  const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: created-with-kubectl}";
  expect(await kubectl(["apply", "-f", "-"], { input: manifest })).toContain("created-with-kubectl created");
});

test("an error of kubectl contains its standard error", async () => {
  const { kubectl } = await sharedApiServer();
  const error: unknown = await kubectl(["get", "configmap", "absent"]).catch((error: unknown) => error);
  expect(String(error)).toContain('configmaps "absent" not found');
});
