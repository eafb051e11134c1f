/** The requests that an API server has served, from its metrics. */
import type { ApiServer } from "@pko/testkit";

/** By `verb resource`. */
export type RequestCounts = Readonly<Record<string, number>>;

const writeVerbs = new Set(["POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"]);
/** Leases, and what the API server itself writes. */
const ignored = new Set(["leases", "flowschemas", "prioritylevelconfigurations", "apiservices", "tokenreviews", ""]);

export async function requestsIn(server: ApiServer): Promise<RequestCounts> {
  return parseRequests(await server.kubectl(["get", "--raw", "/metrics"]));
}

/** Those of the API server itself, too. Pure. */
export function parseRequests(text: string): RequestCounts {
  const counts: Record<string, number> = {};
  for (const line of text.split("\n")) {
    if (!line.startsWith("apiserver_request_total{")) continue;
    const [verb = "", name = ""] = ["verb", "resource"].map(
      (label) => new RegExp(`${label}="([^"]*)"`).exec(line)?.[1],
    );
    const key = `${verb} ${name}`;
    counts[key] = (counts[key] ?? 0) + Number(line.split(" ").at(-1));
  }
  return counts;
}

/** Without those to Leases. Pure. */
export function onlyWrites(counts: RequestCounts): RequestCounts {
  const isWrite = ([key]: readonly [string, number]): boolean => {
    const [verb = "", name = ""] = key.split(" ");
    return writeVerbs.has(verb) && !ignored.has(name);
  };
  return Object.fromEntries(Object.entries(counts).filter(isWrite));
}

/** Those that were added. Pure. */
export function addedSince(before: RequestCounts, after: RequestCounts): RequestCounts {
  const added = Object.entries(after).map(([key, count]) => [key, count - (before[key] ?? 0)] as const);
  return Object.fromEntries(added.filter(([, count]) => count > 0));
}
