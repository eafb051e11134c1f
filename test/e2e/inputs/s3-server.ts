/** An S3 server on this machine whose buckets are folders. It checks signatures. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { toolPath } from "@pko/cluster";
import { freePort, spawnChild, waitFor } from "@pko/testkit";

import { machineAddress } from "../harness.ts";

export interface S3Server {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** The URL of a bucket as a Pulumi backend. */
  backendUrl(bucket: string): string;
  /** The lock files in a bucket. */
  locks(bucket: string): string[];
  /** The file of an object. */
  path(bucket: string, key: string): string;
  stop(): Promise<void>;
}

export async function serveS3(...buckets: readonly string[]): Promise<S3Server> {
  const root = mkdtempSync(join(tmpdir(), "pko-s3-"));
  const folder = join(root, "buckets");
  // In case the file system has no extended attributes.
  const attributes = join(root, "attributes");
  for (const path of [attributes, ...buckets.map((bucket) => join(folder, bucket))])
    mkdirSync(path, { recursive: true });
  const [accessKeyId, secretAccessKey] = ["AKIAEXAMPLE", "canary-of-the-bucket"];
  const address = `${machineAddress}:${await freePort()}`;
  const keys = ["--access", accessKeyId, "--secret", secretAccessKey];
  const server = spawnChild({
    command: [toolPath("versitygw"), ...keys, "--port", address, "--quiet", "posix", "--sidecar", attributes, folder],
    logFile: join(root, "server.log"),
  });
  await waitFor(async () => (await fetch(`http://${address}/`)).status > 0, { what: "the S3 server to answer" });
  return {
    accessKeyId,
    secretAccessKey,
    backendUrl: (bucket) =>
      `s3://${bucket}?endpoint=http://${address}&disableSSL=true&s3ForcePathStyle=true&region=us-east-1`,
    locks: (bucket) =>
      readdirSync(join(folder, bucket), { recursive: true, encoding: "utf8" }).filter((path) =>
        /^\.pulumi\/locks\/.*\.json$/.test(path),
      ),
    path: (bucket, key) => join(folder, bucket, key),
    async stop() {
      await server.stop();
      rmSync(root, { recursive: true });
    },
  };
}
