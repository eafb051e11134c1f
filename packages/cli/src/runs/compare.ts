/** How two runs differ. Pure. */
import { urnName, urnType } from "@pko/records";

import type { Comparison, RunResource, UpdateDetail } from "../documents.ts";
import { heading, section, text, type Block, type Column } from "../output/blocks.ts";
import { hiddenTextOf } from "../visibility.ts";
import { isChange } from "./run-log.ts";

export interface ComparedRun {
  readonly detail: UpdateDetail;
  /** URNs of the resources after the run. */
  readonly resources: readonly string[];
  /** Undefined if they are unknown. */
  readonly outputs?: readonly string[];
}

type Pair = Comparison["run"][number];
type Differences = Pick<Comparison, "run" | "inputs" | "changes" | "resources" | "outputs">;

export function compareRuns(from: ComparedRun, to: ComparedRun): Differences {
  return {
    run: differing(facts(from.detail), facts(to.detail)),
    inputs: differing(from.detail.inputs ?? {}, to.detail.inputs ?? {}),
    changes: differing(operations(from.detail), operations(to.detail)),
    // Without a list of resources, there is nothing to compare with.
    resources: bothKnown(from.resources, to.resources) ? presence(from.resources, to.resources) : [],
    outputs: from.outputs && to.outputs ? presence(from.outputs, to.outputs) : [],
  };
}

const bothKnown = (a: readonly string[], b: readonly string[]): boolean => a.length > 0 && b.length > 0;

type Facts = Readonly<Record<string, string | undefined>>;

function facts({ type, state, errorClass, revision, reason, summary, approvedBy, versions }: UpdateDetail): Facts {
  const result = errorClass === undefined ? state : `${state} (${errorClass})`;
  const byComponent = Object.entries(versions ?? {}).map(([name, version]) => [`version of ${name}`, version]);
  const own = { operation: type, result, revision, trigger: reason, approver: approvedBy, changes: summary };
  return { ...own, ...(Object.fromEntries(byComponent) as Facts) };
}

const operations = ({ resources = [] }: UpdateDetail): Facts =>
  Object.fromEntries(resources.filter(isChange).map((resource) => [resource.urn, operationText(resource)]));

const operationText = ({ op, state }: RunResource): string => (state === "failed" ? `${op} failed` : op);

const presence = (from: readonly string[], to: readonly string[]): Pair[] => {
  const marked = (names: readonly string[]): Facts => Object.fromEntries(names.map((name) => [name, "exists"]));
  return differing(marked(from), marked(to));
};

function differing(from: Facts, to: Facts): Pair[] {
  return [...new Set([...Object.keys(from), ...Object.keys(to)])].flatMap((name) => {
    const [a, b] = [from[name], to[name]];
    return a === b ? [] : [{ name, ...(a !== undefined && { from: a }), ...(b !== undefined && { to: b }) }];
  });
}

export function comparisonBlocks(comparison: Comparison): Block[] {
  const { from, to, run, inputs, changes, resources, outputs, hidden } = comparison;
  const table = (title: string, pairs: readonly Pair[], more: Partial<Cells> = {}): Block[] =>
    section(
      title,
      pairs.length > 0 ? [pairTable(pairs, { from, to, name: ({ name }) => name, absent: "-", ...more })] : [],
    );
  const resourceName = ({ name }: Pair): string => `${urnType(name)} ${urnName(name)}`;
  const isSame = [run, inputs, changes, resources, outputs].every(({ length }) => length === 0);
  return [
    heading(`From ${from} to ${to}`),
    ...(isSame ? [text("What is known about the two runs does not differ.")] : []),
    ...table("Run", run),
    // A record may lack an input because it is older, or was too large, and not because the run did not have it.
    ...table("Inputs", inputs, { absent: "not recorded" }),
    ...table("Operations on resources", changes, { name: resourceName }),
    ...table("Resources of the stack", resources, { name: resourceName }),
    ...table("Outputs", outputs),
    ...section("Not visible to you", hidden.length > 0 ? [{ kind: "list", items: hidden.map(hiddenTextOf) }] : []),
  ];
}

interface Cells {
  readonly from: string;
  readonly to: string;
  readonly name: (pair: Pair) => string;
  readonly absent: string;
}

function pairTable(pairs: readonly Pair[], { from, to, name, absent }: Cells): Block {
  const columns: Column[] = [{ title: "WHAT" }, { title: from }, { title: to, wraps: true }];
  return { kind: "table", columns, rows: pairs.map((pair) => [name(pair), pair.from ?? absent, pair.to ?? absent]) };
}
