/** Drift, as the events of a preview of a refresh report it: which resources and properties differ, without their values. */
import type { StepCounts } from "@pko/records";
import type { Drift } from "@pko/rpc";
import { truncate } from "../system/clean-text.ts";
import type { Cleaner } from "./engine-events.ts";
import { entry } from "./project/project.ts";
import { asRecord, differences, formatPath } from "./property-path.ts";

export type DriftedResource = Drift["resources"][number];

/** The operations with which a refresh reports a resource that differs from the state. */
const driftOperations: ReadonlySet<unknown> = new Set(["update", "delete"]);

const maxResources = 100;
const maxProperties = 64;
const maxPathChars = 256;

/** From the metadata of a resource whose step has finished. Undefined if the resource is as the state describes it. */
export function driftedResource(metadata: unknown, clean: Cleaner): DriftedResource | undefined {
  const [operation, urn] = [entry(metadata, "op"), entry(metadata, "urn")];
  if (typeof operation !== "string" || typeof urn !== "string" || !driftOperations.has(operation)) return undefined;
  const paths = operation === "delete" ? [] : changedPaths(metadata);
  return {
    urn: truncate(clean(urn), 4096),
    operation,
    properties: [...new Set(paths)].slice(0, maxProperties).map((path) => truncate(clean(path), maxPathChars)),
  };
}

/** As the provider reports them. Most providers report none for a refresh; then the properties are compared. */
function changedPaths(metadata: unknown): string[] {
  const detailed = Object.keys(asRecord(entry(metadata, "detailedDiff")));
  if (detailed.length > 0) return detailed;
  const [before, after] = [entry(metadata, "old"), entry(metadata, "new")];
  const outputs = differences(entry(before, "outputs"), entry(after, "outputs"));
  if (outputs.length > 0) return outputs.map(formatPath);
  const inputs = differences(entry(before, "inputs"), entry(after, "inputs"));
  return inputs.length > 0 ? inputs.map(formatPath) : texts(entry(metadata, "diffs"));
}

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];

/** Collects the drifted resources of a run, within the limits of the protocol. */
export class DriftFindings {
  readonly #resources: DriftedResource[] = [];

  add(resource: DriftedResource): void {
    if (this.#resources.length < maxResources) this.#resources.push(resource);
  }

  /** Every changed resource is counted, also those whose event was too large to be read. */
  among(changes: StepCounts): Drift {
    const { same: _, ...changed } = changes;
    const total = Object.values(changed).reduce((sum, count) => sum + count, 0);
    return { resources: this.#resources, omitted: Math.max(0, total - this.#resources.length) };
  }
}
