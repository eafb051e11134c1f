/** The rows of the fleet: order, search and filters. Pure. */
import {
  byUrgency,
  conditionOf,
  decidingCondition,
  describeSource,
  withoutPassword,
  stackStates,
  stateOf,
  type Stack,
  type StackSpec,
  type StackState,
} from "@pko/api/browser";

export interface FleetRow {
  readonly namespace: string;
  readonly name: string;
  readonly pulumiStack: string;
  readonly state: StackState;
  readonly reason: string;
  readonly message: string;
  /** The address of the Git repository, or what else the program comes from. */
  readonly repository: string;
  readonly lastUpdateTime?: string;
  readonly next?: { readonly what: string; readonly time: string };
  readonly isDeleting: boolean;
}

export const notObserved = "The operator has not processed this Stack yet.";

export function fleetRow(stack: Stack): FleetRow {
  const { metadata, status } = stack;
  // A Stack without a spec was created before the API server validated it.
  const spec = stack.spec as StackSpec | undefined;
  const { namespace = "", name = "" } = metadata;
  const { state, reason, message } = stateFacts(stack);
  const pulumiStack = spec?.stack ?? "";
  const repository = repositoryOf(spec);
  return {
    namespace,
    name,
    pulumiStack,
    state,
    reason,
    message,
    repository,
    ...(status?.lastUpdate?.lastResyncTime !== undefined && { lastUpdateTime: status.lastUpdate.lastResyncTime }),
    ...(status?.next && { next: status.next }),
    isDeleting: metadata.deletionTimestamp !== undefined,
  };
}

const searchTexts = new WeakMap<FleetRow, string>();

/** Everything that the search finds, in lower case. Only for those who search: of 10,000 rows it takes a while. */
function searchText(row: FleetRow): string {
  const known = searchTexts.get(row);
  if (known !== undefined) return known;
  const { namespace, name, pulumiStack, state, reason, message, repository } = row;
  const text = [namespace, name, pulumiStack, state, reason, message, repository].join("\n").toLowerCase();
  searchTexts.set(row, text);
  return text;
}

function stateFacts(stack: Stack): Pick<FleetRow, "state" | "reason" | "message"> {
  const state = stateOf(stack);
  const condition = state === "Drifted" ? conditionOf(stack, "Drifted") : decidingCondition(stack);
  return { state, reason: condition?.reason ?? "", message: condition?.message ?? notObserved };
}

/** Stacks of one repository have the same text here, whatever their branch and folder. */
function repositoryOf(spec: StackSpec | undefined): string {
  if (!spec) return "";
  if (!spec.projectRepo) return describeSource(spec);
  return withoutPassword(spec.projectRepo)
    .replace(/\.git$/, "")
    .replace(/(?<!\/)\/+$/, "");
}

export interface FleetFilter {
  readonly search: string;
  readonly namespace: string;
  readonly state: string;
  readonly repository: string;
}

export const noFilter: FleetFilter = { search: "", namespace: "", state: "", repository: "" };

/** Every word of the search has to occur. */
export function filterFleet(rows: readonly FleetRow[], filter: FleetFilter): FleetRow[] {
  const words = filter.search.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter(
    (row) =>
      (filter.namespace === "" || row.namespace === filter.namespace) &&
      (filter.state === "" || row.state === filter.state) &&
      (filter.repository === "" || row.repository === filter.repository) &&
      words.every((word) => searchText(row).includes(word)),
  );
}

export const sortFleet = (rows: readonly FleetRow[]): FleetRow[] => rows.toSorted(byUrgency);

/** How many Stacks are in each state, in the order of urgency; states without any are included. */
export function countStates(rows: readonly FleetRow[]): { readonly state: StackState; readonly count: number }[] {
  const counts = new Map<StackState, number>();
  for (const { state } of rows) counts.set(state, (counts.get(state) ?? 0) + 1);
  return stackStates.map((state) => ({ state, count: counts.get(state) ?? 0 }));
}

export function countText(shown: number, all: number): string {
  const total = all === 1 ? "1 Stack" : `${all} Stacks`;
  return shown === all ? total : `${shown} of ${total}`;
}

/** The values among which a filter chooses, sorted. */
export const distinct = (values: readonly string[]): string[] =>
  [...new Set(values)].filter(Boolean).toSorted((a, b) => a.localeCompare(b));

export function filterFromQuery(query: URLSearchParams): FleetFilter {
  const value = (name: string): string => query.get(name) ?? "";
  return {
    search: value("search"),
    namespace: value("namespace"),
    state: value("state"),
    repository: value("repository"),
  };
}

export function filterToQuery(filter: FleetFilter): string {
  const set = Object.entries(filter).filter(([, value]) => value !== "");
  return set.length === 0 ? "" : `?${new URLSearchParams(set).toString()}`;
}
