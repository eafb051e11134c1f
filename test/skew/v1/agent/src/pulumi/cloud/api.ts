/** Requests to Pulumi Cloud's API, with the certificates that the CLI trusts. The one place that uses `tls` of `fetch`. */
import { rootCertificates } from "node:tls";
import { errorMessage, readText } from "../../../../rpc/src/index.ts";
import { readIfThere } from "../../system/files.ts";
import type { Environment } from "./backend.ts";

interface ApiRequest {
  readonly method: "GET" | "POST";
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** That of the CLI, which may name certificates to trust. */
  readonly env: Environment;
  readonly signal?: AbortSignal | undefined;
}

export type ApiAnswer =
  | { readonly kind: "answered"; readonly status: number; readonly text: string }
  | { readonly kind: "unreachable"; readonly message: string };

const timeoutMs = 30_000;
/** An error page of a proxy can be long, and nobody reads it. */
const maxAnswerBytes = 1024 * 1024;

export async function callApi(request: ApiRequest): Promise<ApiAnswer> {
  const { method, url, headers = {}, body, env, signal } = request;
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(url, {
      method,
      headers: { accept: "application/vnd.pulumi+8", ...headers },
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      // Credentials go where they were meant to go, and nowhere else.
      redirect: "error",
      keepalive: false,
      ...(body !== undefined && { body }),
      ...(url.startsWith("https:") && { tls: { ca: await trusted(env) } }),
    });
    const text = response.body ? await readText(response.body, maxAnswerBytes) : "";
    return { kind: "answered", status: response.status, text: text ?? "" };
  } catch (error) {
    const reason = timeout.aborted ? "it does not answer" : errorMessage(error);
    return { kind: "unreachable", message: `${hostOf(url)} cannot be reached: ${reason}` };
  }
}

/** Where Go looks for them; private authorities are added to an image there. */
const systemBundles = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

async function trusted(env: Environment): Promise<string[]> {
  const named = env["SSL_CERT_FILE"];
  const files = named ? [named] : systemBundles;
  const texts = await Promise.all(files.map((file) => readIfThere(file).catch(() => undefined)));
  const found = texts.find((text) => text !== undefined);
  const own = found?.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  return own.length > 0 ? own : [...rootCertificates];
}

function hostOf(url: string): string {
  return URL.parse(url)?.host ?? "the backend";
}
