/** Every response of the console: its headers do not depend on the data. */
import type { Problem } from "../shared/contract.ts";

/** The page loads nothing from elsewhere, runs no inline script, and cannot be shown in a frame. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  // Not even the page's own script can turn text into HTML or code.
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const always: Readonly<Record<string, string>> = {
  "content-security-policy": contentSecurityPolicy,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

export interface ResponseOptions {
  readonly status?: number;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

type Body = string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null;

export function respond(body: Body, { status = 200, contentType, headers }: ResponseOptions = {}): Response {
  return new Response(body, {
    status,
    headers: {
      ...always,
      "cache-control": "no-store",
      ...(contentType !== undefined && { "content-type": contentType }),
      ...headers,
    },
  });
}

export const json = (value: object, options: ResponseOptions = {}): Response =>
  respond(JSON.stringify(value), { ...options, contentType: "application/json" });

/** The console refuses a request. */
export function refuse(status: number, message: string, headers?: Readonly<Record<string, string>>): Response {
  const problem: Problem = { message };
  return json(problem, { status, ...(headers && { headers }) });
}

export const acceptsGzip = (headers: Headers): boolean => /\bgzip\b/.test(headers.get("accept-encoding") ?? "");
