import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { answer, imageNames } from "./registry.ts";

const digest = `sha256:${"a".repeat(64)}`;
const layer = `sha256:${"b".repeat(64)}`;
const layout = mkdtempSync(join(tmpdir(), "pko-layout-"));
mkdirSync(join(layout, "blobs/sha256"), { recursive: true });
writeFileSync(join(layout, "blobs", digest.replace(":", "/")), '{"schemaVersion":2}');
writeFileSync(join(layout, "blobs", layer.replace(":", "/")), "layer");
writeFileSync(
  join(layout, "index.json"),
  JSON.stringify({
    manifests: [{ digest, annotations: { "org.opencontainers.image.ref.name": "docker.io/library/busybox:latest" } }],
  }),
);
afterAll(() => rmSync(layout, { recursive: true }));

const get = (path: string, method = "GET"): Response =>
  answer(new Request(`http://registry${path}`, { method }), [layout]);

describe("the registry", () => {
  test("finds a tag in the requested registry", async () => {
    const response = get("/v2/library/busybox/manifests/latest?ns=docker.io");
    expect(response.headers.get("docker-content-digest")).toBe(digest);
    expect(response.headers.get("content-type")).toBe("application/vnd.oci.image.manifest.v1+json");
    expect(await response.json()).toEqual({ schemaVersion: 2 });
  });

  test("finds manifests and layers by digest", async () => {
    expect(get(`/v2/library/busybox/manifests/${digest}`).status).toBe(200);
    expect(await get(`/v2/anything/blobs/${layer}`).text()).toBe("layer");
  });

  test("answers HEAD with the size and no body", async () => {
    const response = get("/v2/library/busybox/manifests/latest", "HEAD");
    expect(response.headers.get("content-length")).toBe("19");
    expect(await response.text()).toBe("");
  });

  test.each([
    "/v2/library/busybox/manifests/other",
    "/v2/library/busybox/manifests/latest?ns=quay.io",
    `/v2/x/blobs/sha256:${"c".repeat(64)}`,
    "/v2/x/blobs/sha256:..%2F..%2Findex.json",
    "/elsewhere",
  ])("returns 404 for %s", (path) => {
    expect(get(path).status).toBe(404);
  });

  test("lists its images", () => {
    expect(imageNames(layout)).toEqual(["docker.io/library/busybox:latest"]);
  });
});
