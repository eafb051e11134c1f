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
/** With version 2, it names no refs. */
const maxAdvertisementBytes = 64 * 1024;
const version2 = { "git-protocol": "version=2", "user-agent": "git/pulumi-operator" };

/**
 * Receives a response part by part. What it does not keep takes no memory: many servers may send as much as is allowed at the
 * same time, as slowly as is allowed.
 */
export interface Reader<T> {
  /** False if the response is not understood: then the rest is not read. */
  add(part: Uint8Array): boolean;
  /** After the last part. Undefined if the response is not understood. */
  end(): T | undefined;
}

type Received<T> = { readonly kind: "received"; readonly value: T } | Failure;

/** Of the repository's capabilities. `repository` must not contain credentials. */
export async function requestAdvertisement(repository: URL, options: LsRefsOptions): Promise<Received<Uint8Array>> {
  const url = `${baseOf(repository)}/info/refs?service=${service}`;
  const headers = { ...version2, accept: `application/x-${service}-advertisement` };
  return await requestPackets(url, { ...options, maxBytes: maxAdvertisementBytes, headers }, allBytes());
}

interface Command<T> {
  /** In packets. */
  readonly body: string;
  readonly reader: Reader<T>;
}

export async function requestCommand<T>(
  repository: URL,
  { body, reader }: Command<T>,
  options: LsRefsOptions,
): Promise<Received<T>> {
  const headers = {
    ...version2,
    accept: `application/x-${service}-result`,
    "content-type": `application/x-${service}-request`,
  };
  return await requestPackets(
    `${baseOf(repository)}/${service}`,
    { ...options, method: "POST", headers, body },
    reader,
  );
}

const baseOf = (repository: URL): string => repository.href.replace(/\/$/, "");

interface PacketsOptions extends LsRefsOptions {
  readonly method?: "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

async function requestPackets<T>(url: string, options: PacketsOptions, reader: Reader<T>): Promise<Received<T>> {
  const { maxBytes = defaultMaxBytes, ...sent } = options;
  const result = await requestTwice(new URL(url), { ...sent, redirects: "return" });
  if (result.kind !== "answered") return result;
  const { response } = result;
  try {
    const isExpected = response.status === 200 && mediaType(response) === options.headers["accept"];
    // The body of an error is read, too, so that the connection can be used again.
    const isWhole = await readParts(response, maxBytes, isExpected ? (part) => reader.add(part) : () => true);
    if (response.status < 300 && mediaType(response) === "text/html") return { kind: "page" };
    if (response.status !== 200) return { kind: "status", status: response.status, ...retryAfter(response) };
    const value = isExpected && isWhole ? reader.end() : undefined;
    return value === undefined ? unsupported : { kind: "received", value };
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

/** False if there is more than is allowed, or wanted. */
async function readParts(
  { body }: HttpResponse,
  maxBytes: number,
  add: (part: Uint8Array) => boolean,
): Promise<boolean> {
  let size = 0;
  for await (const part of body) {
    size += part.length;
    if (size > maxBytes || !add(part)) return false;
  }
  return true;
}

export function allBytes(): Reader<Uint8Array> {
  const parts: Uint8Array[] = [];
  return {
    add: (part) => parts.push(part) > 0,
    end: () => Buffer.concat(parts),
  };
}

/** What the server asks for with `Retry-After`. */
export function retryAfter(response: Pick<HttpResponse, "header">): { readonly retryAfterSeconds?: number } {
  const text = response.header("retry-after") ?? "";
  if (/^\d+$/.test(text)) return { retryAfterSeconds: Number(text) };
  const [at, now] = [Date.parse(text), Date.parse(response.header("date") ?? "")];
  return Number.isNaN(at) || Number.isNaN(now) ? {} : { retryAfterSeconds: Math.max(0, (at - now) / 1000) };
}
