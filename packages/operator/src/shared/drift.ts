/** Drift, as statuses and messages report it: within limits, and as one line. Pure. */
import type { UpdateDrift } from "@pko/api";
import { urnName, urnType } from "@pko/records";

export type DriftedResource = UpdateDrift["resources"][number];

interface Limits {
  readonly resources: number;
  /** Of the resources as JSON. */
  readonly chars: number;
}

/** Resources that do not fit are counted. */
export function boundedDrift({ resources, omitted = 0 }: UpdateDrift, limits: Limits): UpdateDrift {
  const kept: DriftedResource[] = [];
  let chars = 0;
  for (const resource of resources.slice(0, limits.resources)) {
    chars += JSON.stringify(resource).length;
    if (chars > limits.chars) break;
    kept.push(resource);
  }
  const left = omitted + resources.length - kept.length;
  return { resources: kept, ...(left > 0 && { omitted: left }) };
}

/** How many resources differ from the state. */
export const driftCount = ({ resources, omitted = 0 }: UpdateDrift): number => resources.length + omitted;

const shownResources = 10;
const shownProperties = 8;

/** By resource and property: `v1:ConfigMap settings (data.mode); v1:Service web (deleted); and 3 more`. */
export function driftSummary({ resources, omitted = 0 }: UpdateDrift): string {
  const left = omitted + Math.max(0, resources.length - shownResources);
  const named = resources.slice(0, shownResources).map(describeResource);
  return [...named, ...(left > 0 ? [`${named.length > 0 ? "and " : ""}${left} more`] : [])].join("; ");
}

/** The engine masks secrets, so which properties differ is not always known. */
function describeResource({ urn, operation, properties = [] }: DriftedResource): string {
  const [type, name] = [urnType(urn) || "resource", urnName(urn) || urn];
  if (operation === "delete") return `${type} ${name} (deleted)`;
  if (properties.length === 0) return `${type} ${name} (changed)`;
  const left = properties.length - shownProperties;
  const shown = properties.slice(0, shownProperties).join(", ");
  return `${type} ${name} (${left > 0 ? `${shown}, and ${left} more` : shown})`;
}
