/** The writes that an API server has served, from its metrics. */
import type { ApiServer } from "@pko/testkit";

/** By `verb resource`. */
export type RequestCounts = Readonly<Record<string, number>>;

const writeVerbs = new Set(["POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"]);
/** Leases, and what the API server itself writes. */
const ignored = new Set(["leases", "flowschemas", "prioritylevelconfigurations", "apiservices", "tokenreviews", ""]);

export async function writesIn(server: ApiServer): Promise<RequestCounts> {
  return parseWrites(await server.kubectl(["get", "--raw", "/metrics"]));
}

/** Pure. */
export function parseWrites(text: string): RequestCounts {
  const counts: Record<string, number> = {};
  for (const line of text.split("\n")) {
    if (!line.startsWith("apiserver_request_total{")) continue;
    const [verb = "", name = ""] = ["verb", "resource"].map(
      (label) => new RegExp(`${label}="([^"]*)"`).exec(line)?.[1],
    );
    if (!writeVerbs.has(verb) || ignored.has(name)) continue;
    const key = `${verb} ${name}`;
    counts[key] = (counts[key] ?? 0) + Number(line.split(" ").at(-1));
  }
  return counts;
}

/** Those that were added. Pure. */
export function addedSince(before: RequestCounts, after: RequestCounts): RequestCounts {
  const added = Object.entries(after).map(([key, count]) => [key, count - (before[key] ?? 0)] as const);
  return Object.fromEntries(added.filter(([, count]) => count > 0));
}
