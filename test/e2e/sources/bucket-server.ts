/** A minimal S3 server for one bucket and one access key: it lists and returns objects with their ETags. */
import { createHash } from "node:crypto";

import { machineAddress } from "../harness.ts";

export interface BucketServer {
  readonly endpoint: string;
  /** The content of each object, by its key. */
  files: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

const etagOf = (text: string): string => `"${createHash("md5").update(text).digest("hex")}"`;
const xml = (body: string, status = 200): Response =>
  new Response(`<?xml version="1.0" encoding="UTF-8"?>${body}`, {
    status,
    headers: { "content-type": "application/xml" },
  });
const errorResponse = (code: string, status: number): Response => xml(`<Error><Code>${code}</Code></Error>`, status);

export function serveBucket(bucket: string, accessKey: string): BucketServer {
  const server = Bun.serve({
    hostname: machineAddress,
    port: 0,
    fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      const isKnown = request.headers.get("authorization")?.includes(`Credential=${accessKey}/`);
      if (!isKnown) return errorResponse("AccessDenied", 403);
      if (pathname === `/${bucket}/` || pathname === `/${bucket}`) {
        if (searchParams.has("location")) return xml("<LocationConstraint/>");
        return request.method === "HEAD" ? new Response(null) : xml(listing(self.files));
      }
      const text = self.files[decodeURIComponent(pathname).slice(bucket.length + 2)];
      return text === undefined ? errorResponse("NoSuchKey", 404) : object(text, request.method);
    },
  });
  const self: BucketServer = {
    endpoint: `${machineAddress}:${server.port}`,
    files: {},
    stop: () => server.stop(true),
  };
  return self;
}

const modified = new Date(0);

function object(text: string, method: string): Response {
  const headers = {
    etag: etagOf(text),
    "last-modified": modified.toUTCString(),
    "content-length": String(Buffer.byteLength(text)),
  };
  return new Response(method === "HEAD" ? null : text, { headers });
}

function listing(files: Readonly<Record<string, string>>): string {
  const contents = Object.entries(files).map(
    ([key, text]) =>
      `<Contents><Key>${key}</Key><LastModified>${modified.toISOString()}</LastModified><ETag>${etagOf(text)}</ETag>` +
      `<Size>${Buffer.byteLength(text)}</Size></Contents>`,
  );
  return `<ListBucketResult><IsTruncated>false</IsTruncated>${contents.join("")}</ListBucketResult>`;
}
