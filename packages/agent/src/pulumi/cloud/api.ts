/** Requests to Pulumi Cloud's API, with the CAs that the CLI trusts. The agent's only user of `tls` of `fetch`. */
import { rootCertificates } from "node:tls";
import { errorMessage, readText } from "@pko/rpc";
import { readIfExists } from "../../system/files.ts";
import type { Environment } from "./backend.ts";

interface ApiRequest {
  readonly method: "GET" | "POST";
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The CLI's environment, which may name CAs to trust. */
  readonly env: Environment;
  readonly signal?: AbortSignal | undefined;
}

export type ApiResponse =
  | { readonly kind: "answered"; readonly status: number; readonly text: string }
  | { readonly kind: "unreachable"; readonly message: string };

const timeoutMs = 30_000;
/** A proxy's error page can be long. */
const maxResponseBytes = 1024 * 1024;

export async function callApi(request: ApiRequest): Promise<ApiResponse> {
  const { method, url, headers = {}, body, env, signal } = request;
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(url, {
      method,
      headers: { accept: "application/vnd.pulumi+8", ...headers },
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      // Never send credentials to another server.
      redirect: "error",
      keepalive: false,
      ...(body !== undefined && { body }),
      ...(url.startsWith("https:") && { tls: { ca: await trustedCertificates(env) } }),
    });
    const text = response.body ? await readText(response.body, maxResponseBytes) : "";
    return { kind: "answered", status: response.status, text: text ?? "" };
  } catch (error) {
    const reason = timeout.aborted ? "it does not respond" : errorMessage(error);
    return { kind: "unreachable", message: `${hostIn(url)} cannot be reached: ${reason}` };
  }
}

/** Where Go finds CAs; images add private CAs there. */
const systemBundles = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

async function trustedCertificates(env: Environment): Promise<string[]> {
  const named = env["SSL_CERT_FILE"];
  const files = named ? [named] : systemBundles;
  const texts = await Promise.all(files.map((file) => readIfExists(file).catch(() => undefined)));
  const found = texts.find((text) => text !== undefined);
  const own = found?.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  return own.length > 0 ? own : [...rootCertificates];
}

function hostIn(url: string): string {
  return URL.parse(url)?.host ?? "the backend";
}
