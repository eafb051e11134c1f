/** Requests to Pulumi Cloud's API, with the CAs that the CLI trusts. The agent's only user of `tls` of `fetch`. */
import { trustedCaCertificates, type Environment } from "@pko/git";
import { errorMessage, readText, splitBundle } from "@pko/rpc";

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
  const ca = url.startsWith("https:") ? await trustedCas(env) : undefined;
  try {
    const response = await fetch(url, {
      method,
      headers: { accept: "application/vnd.pulumi+8", ...headers },
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      // Never send credentials to another server.
      redirect: "error",
      keepalive: false,
      ...(body !== undefined && { body }),
      ...(ca && { tls: { ca } }),
    });
    const text = response.body ? await readText(response.body, maxResponseBytes) : "";
    return { kind: "answered", status: response.status, text: text ?? "" };
  } catch (error) {
    const reason = timeout.aborted ? "it does not respond" : errorMessage(error);
    return { kind: "unreachable", message: `${hostIn(url)} cannot be reached: ${reason}` };
  }
}

/** As for the CLI, which is a Go program. Undefined for the runtime's own list. */
async function trustedCas({ SSL_CERT_FILE, SSL_CERT_DIR }: Environment): Promise<string[] | undefined> {
  const bundle = await trustedCaCertificates({ SSL_CERT_FILE, SSL_CERT_DIR });
  return bundle === undefined ? undefined : splitBundle(bundle);
}

function hostIn(url: string): string {
  return URL.parse(url)?.host ?? "the backend";
}
