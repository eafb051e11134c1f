/** Just as much of S3 as it takes to read a bucket: a listing, and objects with their tags, for one access key. */
import { createHash } from "node:crypto";

import { network } from "@pko/cluster";

export interface BucketServer {
  readonly endpoint: string;
  /** Texts by their path within the bucket. */
  files: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

const tagOf = (text: string): string => `"${createHash("md5").update(text).digest("hex")}"`;
const xml = (body: string, status = 200): Response =>
  new Response(`<?xml version="1.0" encoding="UTF-8"?>${body}`, {
    status,
    headers: { "content-type": "application/xml" },
  });
const refused = (code: string, status: number): Response => xml(`<Error><Code>${code}</Code></Error>`, status);

export function serveBucket(bucket: string, accessKey: string): BucketServer {
  const server = Bun.serve({
    hostname: network.machine,
    port: 0,
    fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      const isKnown = request.headers.get("authorization")?.includes(`Credential=${accessKey}/`);
      if (!isKnown) return refused("AccessDenied", 403);
      if (pathname === `/${bucket}/` || pathname === `/${bucket}`) {
        if (searchParams.has("location")) return xml("<LocationConstraint/>");
        return request.method === "HEAD" ? new Response(null) : xml(listing(self.files));
      }
      const text = self.files[decodeURIComponent(pathname).slice(bucket.length + 2)];
      return text === undefined ? refused("NoSuchKey", 404) : object(text, request.method);
    },
  });
  const self: BucketServer = {
    endpoint: `${network.machine}:${server.port}`,
    files: {},
    stop: () => server.stop(true),
  };
  return self;
}

const modified = new Date(0);

function object(text: string, method: string): Response {
  const headers = {
    etag: tagOf(text),
    "last-modified": modified.toUTCString(),
    "content-length": String(Buffer.byteLength(text)),
  };
  return new Response(method === "HEAD" ? null : text, { headers });
}

function listing(files: Readonly<Record<string, string>>): string {
  const contents = Object.entries(files).map(
    ([key, text]) =>
      `<Contents><Key>${key}</Key><LastModified>${modified.toISOString()}</LastModified><ETag>${tagOf(text)}</ETag>` +
      `<Size>${Buffer.byteLength(text)}</Size></Contents>`,
  );
  return `<ListBucketResult><IsTruncated>false</IsTruncated>${contents.join("")}</ListBucketResult>`;
}
