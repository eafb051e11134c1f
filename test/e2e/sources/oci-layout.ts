/** A registry with artifacts in the format of `flux push artifact`. */
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { answerRegistry } from "@pko/cluster";

import { machineAddress } from "../harness.ts";

export interface Registry {
  /** The `oci://` URL of a repository. */
  url(repository: string): string;
  /** Sets the tag to an artifact with these files. */
  push(name: string, files: Readonly<Record<string, string>>): void;
  stop(): Promise<void>;
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

const manifestType = "application/vnd.oci.image.manifest.v1+json";

export function serveRegistry(): Registry {
  const layout = mkdtempSync(join(tmpdir(), "pko-oci-"));
  mkdirSync(join(layout, "blobs/sha256"), { recursive: true });
  const tags = new Map<string, Descriptor>();
  const write = (mediaType: string, content: string | Uint8Array): Descriptor => {
    const hex = createHash("sha256").update(content).digest("hex");
    writeFileSync(join(layout, "blobs/sha256", hex), content);
    return { mediaType, digest: `sha256:${hex}`, size: Buffer.byteLength(content) };
  };
  const writeIndex = (): void => {
    const manifests = [...tags].map(([tag, descriptor]) =>
      Object.assign({ annotations: { "org.opencontainers.image.ref.name": tag } }, descriptor),
    );
    writeFileSync(join(layout, "index.json"), JSON.stringify({ schemaVersion: 2, manifests }));
  };
  writeIndex();
  const server = Bun.serve({
    hostname: machineAddress,
    port: 0,
    fetch: (request) => answerRegistry(request, [layout]),
  });
  return {
    url: (repository) => `oci://${machineAddress}:${server.port}/${repository}`,
    push(name, files) {
      const layer = write("application/vnd.cncf.flux.content.v1.tar+gzip", createArchive(files));
      const config = write("application/vnd.cncf.flux.config.v1+json", "{}");
      const manifest = { schemaVersion: 2, mediaType: manifestType, config, layers: [layer] };
      tags.set(`docker.io/${name}`, write(manifestType, JSON.stringify(manifest)));
      writeIndex();
    },
    stop: () => server.stop(true),
  };
}

function createArchive(files: Readonly<Record<string, string>>): Uint8Array {
  const folder = mkdtempSync(join(tmpdir(), "pko-artifact-"));
  for (const [path, text] of Object.entries(files)) writeFileSync(join(folder, path), text);
  const { stdout } = Bun.spawnSync(["tar", "-cz", "-C", folder, "."]);
  return stdout;
}
