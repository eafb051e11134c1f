/** HTTP for the Pulumi Cloud mock: request bodies that may be gzipped, JSON responses, errors in Pulumi Cloud's format. */
import { gunzipSync } from "node:zlib";

import type { AccessTokens, Identity } from "./access.ts";

export interface Call {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** The kind of credentials and their value: `token` for access, `update-token` for a lease. */
  readonly authorization: { readonly kind: string; readonly value: string };
  /** The caller's identity; rejects a call without a valid access token. */
  identity(): Identity;
  text(): Promise<string>;
  /** The body, whose shape is not checked. */
  json<T>(): Promise<T>;
}

/** The response; `undefined` is success without a body. */
export type Answer = object | Response | undefined;
export type Handler = (call: Call) => Promise<Answer> | Answer;

/** An unsuccessful response. */
export class Refusal extends Error {
  readonly status: number;
  readonly body: object;

  constructor(status: number, message: string, more: object = {}) {
    super(message);
    this.status = status;
    this.body = { code: status, message, ...more };
  }
}

/** A request from Bun's router. */
export type RoutedRequest = Request & { readonly params?: Readonly<Record<string, string>> };

export function toCall(request: RoutedRequest, tokens: AccessTokens): Call {
  const [kind = "", value = ""] = (request.headers.get("authorization") ?? "").split(" ");
  const text = async (): Promise<string> => {
    const bytes = Buffer.from(await request.arrayBuffer());
    return (request.headers.get("content-encoding") === "gzip" ? gunzipSync(bytes) : bytes).toString("utf8");
  };
  return {
    params: request.params ?? {},
    query: new URL(request.url).searchParams,
    authorization: { kind, value },
    identity() {
      const identity = kind === "token" ? tokens.find(value) : undefined;
      if (!identity) throw new Refusal(401, "Unauthorized: No credentials provided or are invalid.");
      return identity;
    },
    text,
    json: async <T>() => JSON.parse(await text()) as T,
  };
}

export async function answer(call: Call, handler: Handler): Promise<Response> {
  try {
    const value = await handler(call);
    if (value instanceof Response) return value;
    return value === undefined ? new Response(undefined, { status: 204 }) : Response.json(value);
  } catch (error) {
    if (error instanceof Refusal) return Response.json(error.body, { status: error.status });
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return Response.json({ code: 500, message }, { status: 500 });
  }
}
