/** The resources and diagnostics of a run as blocks. Pure. */
import type { Omitted } from "@pko/records";
import { urnName, urnType } from "@pko/records";

import type { RunDiagnostic, RunResource } from "../documents.ts";
import { text, toned, verbatim, type Block, type Text, type Tone } from "../output/blocks.ts";
import { isChange } from "./run-log.ts";

const opTones: Readonly<Record<string, Tone>> = {
  create: "good",
  import: "good",
  update: "warning",
  replace: "bad",
  delete: "bad",
};

export const opText = ({ op, state }: Pick<RunResource, "op" | "state">): Text =>
  state === "failed" ? toned("bad", `${op} failed`) : toned(opTones[op] ?? "plain", op);

/** With tenths below ten seconds. */
export function took(durationMs: number | undefined): string {
  if (durationMs === undefined) return "";
  const seconds = durationMs / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)}s`;
  const minutes = Math.floor(seconds / 60);
  return minutes === 0 ? `${Math.round(seconds)}s` : `${minutes}m${Math.round(seconds % 60)}s`;
}

/** Those that failed first, then by how much they destroy. */
const operations = ["replace", "delete", "update", "create"];
function rank({ op, state }: RunResource): number {
  if (state === "failed") return -1;
  const at = operations.indexOf(op);
  return at < 0 ? operations.length : at;
}

export const byImportance = (a: RunResource, b: RunResource): number => rank(a) - rank(b);

/** Those that change, with their properties; the others are counted. */
export function resourceBlocks(resources: readonly RunResource[]): Block[] {
  const changed = resources.filter(isChange).toSorted(byImportance);
  const others = resources.length - changed.length;
  const count = others === 1 ? "1 resource is unchanged." : `${others} resources are unchanged.`;
  return [...changed.flatMap(oneResource), ...(others > 0 ? [text(toned("muted", count))] : [])];
}

function oneResource(resource: RunResource): Block[] {
  const { type, name, durationMs, changes = [], omittedChanges = 0, replaceKeys = [] } = resource;
  const forced = replaceKeys.length > 0 ? `because of ${replaceKeys.join(", ")}` : "";
  const more = omittedChanges > 0 ? [`and ${omittedChanges} more properties`] : [];
  const head: Block = { kind: "line", parts: [opText(resource), `${type} ${name}`, forced, took(durationMs)] };
  const properties = [...changes.map(changeText), ...more];
  return properties.length === 0 ? [head] : [head, verbatim(properties.map((each) => `  ${each}`).join("\n"))];
}

type Change = NonNullable<RunResource["changes"]>[number];

function changeText({ path, kind, old, new: next }: Change): string {
  const forces = kind.endsWith("-replace") ? " (forces the replacement)" : "";
  switch (kind.replace(/-replace$/, "")) {
    case "add":
      return `+ ${path}${next === undefined ? "" : `: ${next}`}${forces}`;
    case "delete":
      return `- ${path}${old === undefined ? "" : `: ${old}`}${forces}`;
    default:
      return `~ ${path}${old === undefined && next === undefined ? "" : `: ${old ?? "?"} → ${next ?? "?"}`}${forces}`;
  }
}

const severityTones: Readonly<Record<RunDiagnostic["severity"], Tone>> = {
  error: "bad",
  warning: "warning",
  info: "plain",
  debug: "muted",
};

export const diagnosticText = ({ severity, message, urn }: RunDiagnostic): Text =>
  toned(severityTones[severity], `${urn === undefined ? "" : `${urnType(urn)} ${urnName(urn)}: `}${message}`);

export const diagnosticBlocks = (diagnostics: readonly RunDiagnostic[]): Block[] =>
  diagnostics.length === 0 ? [] : [{ kind: "list", items: diagnostics.map(diagnosticText) }];

/** What a record does not contain. */
export function omittedBlocks(omitted: Omitted | undefined): Block[] {
  const parts = Object.entries(omitted ?? {}).flatMap(([what, count]) => (count > 0 ? [`${count} ${what}`] : []));
  return parts.length === 0 ? [] : [text(toned("warning", `Did not fit into the record: ${parts.join(", ")}.`))];
}
