/** The properties that a step changes, with old and new values, from what the engine reports about the step. */
import {
  maxEventValueChars,
  maxPathChars,
  maxPropertyChanges,
  type PropertyChange,
  type ResourceEvent,
} from "@pko/records";
import { truncate } from "../system/clean-text.ts";
import type { Cleaner } from "./engine-events.ts";
import { entry } from "./project/project.ts";
import { asRecord, differences, formatPath, parsePath, type PropertyPath } from "./property-path.ts";
import { findProperty, showValue } from "./property-values.ts";

/** The steps whose changes are reported. A replacement has several steps; `replace` stands for all of them. */
const changing: ReadonlySet<string> = new Set(["create", "import", "update", "replace", "delete"]);

export type ReportedChanges = Pick<ResourceEvent, "changes" | "omittedChanges" | "replaceKeys">;

interface Change {
  readonly path: PropertyPath;
  readonly kind: string;
  /** Where the values are: in the inputs or outputs of the old and the new resource. */
  readonly before: unknown;
  readonly after: unknown;
}

interface Display {
  readonly resourceType: string;
  readonly clean: Cleaner;
}

/** Of a step that has finished or failed. */
export function reportedChanges(metadata: unknown, isFailed: boolean, clean: Cleaner): ReportedChanges {
  const [op, type] = [entry(metadata, "op"), entry(metadata, "type")];
  // A failed replacement ends before its step `replace`.
  if (typeof op !== "string" || !(changing.has(op) || (isFailed && op === "create-replacement"))) return {};
  const found = findChanges(op, metadata);
  const changes = showChanges(found.slice(0, maxPropertyChanges), {
    resourceType: typeof type === "string" ? type : "",
    clean,
  });
  const keys = texts(entry(metadata, "keys")).slice(0, maxPropertyChanges);
  return {
    ...(changes.length > 0 && { changes }),
    ...(found.length > changes.length && { omittedChanges: found.length - changes.length }),
    ...(keys.length > 0 && { replaceKeys: keys.map((key) => truncate(clean(key), maxPathChars)) }),
  };
}

function findChanges(op: string, metadata: unknown): Change[] {
  const [before, after] = [entry(metadata, "old"), entry(metadata, "new")];
  const [oldInputs, newInputs] = [entry(before, "inputs"), entry(after, "inputs")];
  if (op === "delete") return topLevel(oldInputs).map((path) => change("delete", path, [oldInputs, undefined]));
  if (op === "create" || op === "import") {
    return topLevel(newInputs).map((path) => change("add", path, [undefined, newInputs]));
  }
  const detailed = Object.entries(asRecord(entry(metadata, "detailedDiff")));
  if (detailed.length > 0) return detailed.map(([path, diff]) => detailedChange(path, diff, [before, after]));
  const compared = compare([oldInputs, newInputs], [entry(before, "outputs"), entry(after, "outputs")]);
  const known = new Set(compared.map(({ path }) => path[0]));
  // Properties that differ although their values do not: the engine has masked them.
  const masked = texts(entry(metadata, "diffs")).filter((name) => !known.has(name));
  return [...compared, ...masked.map((name) => change("update", [name], [oldInputs, newInputs]))];
}

type Pair = readonly [before: unknown, after: unknown];

const topLevel = (inputs: unknown): PropertyPath[] =>
  Object.keys(asRecord(inputs)).flatMap((name) => (name.startsWith("__") ? [] : [[name]]));

const change = (kind: string, path: PropertyPath, [before, after]: Pair): Change => ({ kind, path, before, after });

/** As the provider reports it. */
function detailedChange(text: string, diff: unknown, [before, after]: Pair): Change {
  const path = parsePath(text) ?? [text];
  const kind = entry(diff, "diffKind");
  const old = entry(before, entry(diff, "inputDiff") === true ? "inputs" : "outputs");
  const inputs = entry(after, "inputs");
  // A refresh changes outputs.
  const fresh = findProperty(inputs, path) ? inputs : entry(after, "outputs");
  const name = typeof kind === "string" ? kind : "update";
  return change(name, path, [name.startsWith("add") ? undefined : old, name.startsWith("delete") ? undefined : fresh]);
}

/** For providers that report no details. The outputs differ after a refresh; an update also changes computed ones. */
function compare(inputs: Pair, outputs: Pair): Change[] {
  const pair = differences(...inputs).length > 0 ? inputs : outputs;
  return differences(...pair).map((path) => {
    const [had, has] = [findProperty(pair[0], path) !== undefined, findProperty(pair[1], path) !== undefined];
    return change(had ? (has ? "update" : "delete") : "add", path, pair);
  });
}

function showChanges(found: readonly Change[], display: Display): PropertyChange[] {
  let left = maxEventValueChars;
  return found.map(({ path, kind, before, after }) => {
    const [old, fresh] = left > 0 ? [show(before, path, display), show(after, path, display)] : [];
    left -= (old?.length ?? 0) + (fresh?.length ?? 0);
    return {
      path: truncate(display.clean(formatPath(path)), maxPathChars),
      kind: truncate(display.clean(kind), 32),
      ...(old !== undefined && { old }),
      ...(fresh !== undefined && { new: fresh }),
    };
  });
}

function show(root: unknown, path: PropertyPath, { resourceType, clean }: Display): string | undefined {
  const property = findProperty(root, path, resourceType);
  return property && showValue(property, clean);
}

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];
