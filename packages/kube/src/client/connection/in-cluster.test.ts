import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { inClusterCredentials } from "./in-cluster.ts";
import { manualClock } from "../../manual-clock.ts";

let folder: string;
const environment = { KUBERNETES_SERVICE_HOST: "10.96.0.1", KUBERNETES_SERVICE_PORT: "443" };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "in-cluster-test-"));
  await writeFile(join(folder, "ca.crt"), "CA");
  await writeFile(join(folder, "namespace"), "operators\n");
});
afterAll(() => rm(folder, { recursive: true }));

test("the token of a pod's service account is reread as it rotates", async () => {
  await writeFile(join(folder, "token"), "one\n");
  const clock = manualClock();
  const credentials = await inClusterCredentials({ folder, environment, clock });
  expect(credentials).toMatchObject({ server: "https://10.96.0.1:443", namespace: "operators" });
  expect(await credentials.access()).toEqual({ token: "one", tls: { ca: "CA" } });
  await writeFile(join(folder, "token"), "two");
  expect((await credentials.access()).token).toBe("one");
  await clock.advance(60_000);
  expect((await credentials.access()).token).toBe("two");
  await writeFile(join(folder, "token"), "three");
  expect((await credentials.access(true)).token).toBe("three");
});

test("an IPv6 address is put in brackets", async () => {
  const credentials = await inClusterCredentials({
    folder,
    environment: { ...environment, KUBERNETES_SERVICE_HOST: "fd00::1" },
  });
  expect(credentials.server).toBe("https://[fd00::1]:443");
});

test("outside a cluster, the error explains why there are no credentials", async () => {
  expect(await inClusterCredentials({ folder, environment: {} }).catch(String)).toContain("not in a cluster");
});
