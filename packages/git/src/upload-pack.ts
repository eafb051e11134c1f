/**
 * Requests to a repository over HTTP with version 2 of Git's protocol. What is not understood is left to git, which also explains
 * it.
 */
import { request, type HttpOptions, type HttpResponse } from "./http.ts";

/** What a server that supports `ls-refs` has announced. */
export interface UploadPack {
  /** Of the object IDs, such as `sha256`; absent if the server names none. */
  readonly objectFormat?: string;
  /** Whether single commits and trees can be fetched. */
  readonly canFilter?: boolean;
}

export type Failure =
  /** The status is not 200. */
  | { readonly kind: "status"; readonly status: number; readonly retryAfterSeconds?: number }
  /** The URL is not allowed. */
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "unreachable"; readonly message: string; readonly error?: unknown }
  /** The server returned a page for people, such as one to sign in. */
  | { readonly kind: "page" }
  /** The server does not support version 2, or its response is not understood. */
  | { readonly kind: "unsupported" };

export type LsRefsOptions = Omit<HttpOptions, "method" | "redirects" | "body" | "headers"> & {
  /** A larger response is not read. */
  readonly maxBytes?: number;
};

export const service = "git-upload-pack";
export const unsupported = { kind: "unsupported" } as const;
/** A list of a hundred thousand refs fits. */
const defaultMaxBytes = 16 * 1024 * 1024;
const version2 = { "git-protocol": "version=2", "user-agent": "git/pulumi-operator" };

type Received = { readonly kind: "received"; readonly bytes: Uint8Array } | Failure;

/** Of the repository's capabilities. `repository` must not contain credentials. */
export async function requestAdvertisement(repository: URL, options: LsRefsOptions): Promise<Received> {
  return await requestBytes(`${baseOf(repository)}/info/refs?service=${service}`, {
    ...options,
    headers: { ...version2, accept: `application/x-${service}-advertisement` },
  });
}

/** `body`: one command in packets. */
export async function requestCommand(repository: URL, body: string, options: LsRefsOptions): Promise<Received> {
  return await requestBytes(`${baseOf(repository)}/${service}`, {
    ...options,
    method: "POST",
    headers: {
      ...version2,
      accept: `application/x-${service}-result`,
      "content-type": `application/x-${service}-request`,
    },
    body,
  });
}

const baseOf = (repository: URL): string => repository.href.replace(/\/$/, "");

interface BytesOptions extends LsRefsOptions {
  readonly method?: "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

async function requestBytes(url: string, { maxBytes = defaultMaxBytes, ...options }: BytesOptions): Promise<Received> {
  const result = await requestTwice(new URL(url), { ...options, redirects: "return" });
  if (result.kind !== "answered") return result;
  const { response } = result;
  try {
    const bytes = await readAll(response, maxBytes);
    if (response.status < 300 && mediaType(response) === "text/html") return { kind: "page" };
    if (response.status !== 200) return { kind: "status", status: response.status, ...retryAfter(response) };
    if (mediaType(response) !== options.headers["accept"]) return unsupported;
    return bytes ? { kind: "received", bytes } : unsupported;
  } catch (error) {
    if (options.signal?.aborted) throw error;
    // The connection broke while the body was read.
    return { kind: "unreachable", message: `${new URL(url).host} ended the connection`, error };
  } finally {
    response.close();
  }
}

const mediaType = (response: HttpResponse): string | undefined =>
  response.header("content-type")?.split(";")[0]?.trim().toLowerCase();

/** A server may close an idle connection at the moment at which it is used again. */
async function requestTwice(url: URL, options: HttpOptions): ReturnType<typeof request> {
  const result = await request(url, options);
  const isBroken = result.kind === "unreachable" && errorCode(result.error) === "ECONNRESET";
  return isBroken ? await request(url, options) : result;
}

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}

/** Undefined if there is more. Reads the body of an error, too, so that the connection can be used again. */
async function readAll(response: HttpResponse, maxBytes: number): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body) {
    size += chunk.length;
    if (size > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** What the server asks for with `Retry-After`. */
export function retryAfter(response: Pick<HttpResponse, "header">): { readonly retryAfterSeconds?: number } {
  const text = response.header("retry-after") ?? "";
  if (/^\d+$/.test(text)) return { retryAfterSeconds: Number(text) };
  const [at, now] = [Date.parse(text), Date.parse(response.header("date") ?? "")];
  return Number.isNaN(at) || Number.isNaN(now) ? {} : { retryAfterSeconds: Math.max(0, (at - now) / 1000) };
}
