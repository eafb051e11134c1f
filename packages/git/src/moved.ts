/** Finds where a repository has moved to. Git runs with redirects disabled, so that each redirect is checked here. */
import { request, type HttpOptions, type HttpResult } from "./http.ts";

export type Moved =
  | { readonly kind: "moved"; readonly url: URL }
  | { readonly kind: "status"; readonly status: number }
  | Exclude<HttpResult, { kind: "answered" }>;

const suffix = "/info/refs?service=git-upload-pack";

/** `from` must not contain credentials. */
export async function findMoved(from: string, options: Omit<HttpOptions, "method" | "redirects">): Promise<Moved> {
  const start = new URL(from.replace(/\/$/, "") + suffix);
  const result = await request(start, options);
  if (result.kind !== "answered") return result;
  const { url, response } = result;
  response.close();
  if (response.status !== 200) return { kind: "status", status: response.status };
  if (!url.href.endsWith(suffix) || url.href === start.href) {
    return {
      kind: "unreachable",
      message: `${start.host} redirects to a URL that is not a repository; check the repository's URL`,
    };
  }
  return { kind: "moved", url: new URL(url.href.slice(0, -suffix.length)) };
}
