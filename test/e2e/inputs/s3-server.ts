/** An S3 server of this machine: buckets are folders, and only who signs with its keys is let in. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { network, toolPath } from "@pko/cluster";
import { freePort, spawnChild, waitFor } from "@pko/testkit";

export interface S3Server {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Of a bucket, as Pulumi takes it for a backend. */
  backendUrl(bucket: string): string;
  /** The locks of stacks in a bucket. */
  locks(bucket: string): string[];
  /** A file of the bucket, for tests to write. */
  path(bucket: string, key: string): string;
  stop(): Promise<void>;
}

export async function serveS3(...buckets: readonly string[]): Promise<S3Server> {
  const root = mkdtempSync(join(tmpdir(), "pko-s3-"));
  const folder = join(root, "buckets");
  // Where the file system has no extended attributes, they are beside the files.
  const attributes = join(root, "attributes");
  for (const path of [attributes, ...buckets.map((bucket) => join(folder, bucket))])
    mkdirSync(path, { recursive: true });
  const [accessKeyId, secretAccessKey] = ["AKIAEXAMPLE", "canary-of-the-bucket"];
  const address = `${network.machine}:${await freePort()}`;
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
