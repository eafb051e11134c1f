/** What an operation on a Stack costs, as a table. Pure. */
import type { ProxiedRequest } from "@pko/testkit";

export interface Cost {
  readonly title: string;
  readonly operatorMs: number;
  readonly apiServerMs: number;
  /** By verb and resource. */
  readonly requests: Readonly<Record<string, number>>;
}

/** Without renewals of the Lease, which do not depend on what happens. */
export function countRequests(
  requests: readonly Pick<ProxiedRequest, "verb" | "resource" | "subresource" | "query">[],
): Record<string, number> {
  const counts = new Map<string, number>();
  for (const { verb, resource, subresource, query } of requests) {
    if (resource === "leases") continue;
    const name = [resource || "(other)", subresource].filter(Boolean).join("/");
    const key = `${verb} ${name}${query.has("dryRun") ? " (dry run)" : ""}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return Object.fromEntries([...counts].toSorted(([a], [b]) => a.localeCompare(b)));
}

/** Of lifecycles with the same operations. */
export function averages(rounds: readonly (readonly Cost[])[]): Cost[] {
  const mean = (values: readonly number[]): number =>
    Math.round((values.reduce((sum, each) => sum + each, 0) / rounds.length) * 10) / 10;
  return (rounds[0] ?? []).map(({ title }, index) => {
    const costs = rounds.flatMap((round) => round[index] ?? []);
    const keys = [...new Set(costs.flatMap(({ requests }) => Object.keys(requests)))].toSorted();
    return {
      title,
      operatorMs: mean(costs.map(({ operatorMs }) => operatorMs)),
      apiServerMs: mean(costs.map(({ apiServerMs }) => apiServerMs)),
      requests: Object.fromEntries(keys.map((key) => [key, mean(costs.map(({ requests }) => requests[key] ?? 0))])),
    };
  });
}

export function costTable(costs: readonly Cost[]): string {
  const keys = [...new Set(costs.flatMap(({ requests }) => Object.keys(requests)))].toSorted();
  const total = ({ requests }: Cost): number => Object.values(requests).reduce((sum, each) => sum + each, 0);
  const rows = [
    ["", ...costs.map(({ title }) => title)],
    ["CPU of the operator", ...costs.map(({ operatorMs }) => `${Math.round(operatorMs)} ms`)],
    ["CPU of the API server", ...costs.map(({ apiServerMs }) => `${Math.round(apiServerMs)} ms`)],
    ["requests", ...costs.map((cost) => String(Math.round(total(cost) * 10) / 10))],
    ...keys.map((key) => [`  ${key}`].concat(costs.map(({ requests }) => String(requests[key] ?? "")))),
  ];
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const aligned = (cell: string, column: number): string =>
    column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0);
  return rows.map((row) => row.map(aligned).join("  ").trimEnd()).join("\n");
}
