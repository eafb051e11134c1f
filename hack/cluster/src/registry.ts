/**
 * A read-only image registry for OCI layouts on disk. The cluster uses it as a mirror of every registry, so that images
 * with a tag like `latest`, which is resolved at each start of a pod, work without access to a registry.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { network } from "./network.ts";

export const registryUrl = `http://${network.machine}:5000`;

interface Descriptor {
  readonly digest: string;
  readonly mediaType: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** The annotation in the index of a layout that has the image name. */
const nameAnnotation = "org.opencontainers.image.ref.name";

/** Calls `layouts` for each request, because images are published while the cluster runs. */
export function serveRegistry(layouts: () => readonly string[]): void {
  Bun.serve({ hostname: network.machine, port: 5000, fetch: (request) => answer(request, layouts()) });
}

/** The layouts in a folder that may not exist yet. */
export function layoutsIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .map((name) => join(folder, name))
    .filter((layout) => existsSync(join(layout, "index.json")));
}

export function answer(request: Request, layouts: readonly string[]): Response {
  const { pathname, searchParams } = new URL(request.url);
  if (pathname === "/v2/" || pathname === "/v2") return new Response("{}");
  const [, repository = "", kind, reference = ""] = /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(pathname) ?? [];
  const digest = reference.startsWith("sha256:")
    ? reference
    : findDigest(`${searchParams.get("ns") ?? "docker.io"}/${repository}:${reference}`, layouts);
  const file = digest && layouts.map((layout) => blobPath(layout, digest)).find((path) => existsSync(path));
  if (kind === undefined || !digest || file === undefined) return notFound();
  const headers = {
    "content-type": kind === "manifests" ? readMediaType(file) : "application/octet-stream",
    "docker-content-digest": digest,
    "content-length": String(Bun.file(file).size),
  };
  return new Response(request.method === "HEAD" ? null : Bun.file(file), { headers });
}

/** A new response each time, because a body can be sent only once. */
const notFound = (): Response => Response.json({ errors: [{ code: "MANIFEST_UNKNOWN" }] }, { status: 404 });

export function imageNames(layout: string): string[] {
  return descriptors(layout).flatMap((descriptor) => descriptor.annotations?.[nameAnnotation] ?? []);
}

function findDigest(name: string, layouts: readonly string[]): string | undefined {
  return layouts.flatMap(descriptors).find((descriptor) => descriptor.annotations?.[nameAnnotation] === name)?.digest;
}

function descriptors(layout: string): readonly Descriptor[] {
  const index = JSON.parse(readFileSync(join(layout, "index.json"), "utf8")) as { manifests: Descriptor[] };
  return index.manifests;
}

function blobPath(layout: string, digest: string): string {
  return join(layout, "blobs", digest.replace(":", "/"));
}

function readMediaType(manifest: string): string {
  const { mediaType } = JSON.parse(readFileSync(manifest, "utf8")) as Partial<Descriptor>;
  return mediaType ?? "application/vnd.oci.image.manifest.v1+json";
}
