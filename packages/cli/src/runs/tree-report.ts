/** The resources of a Stack after its latest recorded run, by parent. */
import { urnName, urnType, type RecordedResource } from "@pko/records";

import type { Report } from "../command.ts";
import { findNamed, type Context } from "../context.ts";
import { documentOf, type ResourceTree, type TreeResource } from "../documents.ts";
import { CliError, exitCodes, notFound } from "../errors.ts";
import { stacks } from "../kinds.ts";
import { blank, heading, text, toned, verbatim, type Block } from "../output/blocks.ts";
import { relative } from "../output/time.ts";
import { hiddenText, type Seen } from "../visibility.ts";
import { latestResources, recordsOf, type LatestResources } from "./records.ts";

export async function treeReport(context: Context, name: string): Promise<Report> {
  const records = visible(await recordsOf(context, name));
  const latest = await latestResources(records);
  if (!latest) {
    await findNamed(context, stacks, name);
    const fix = `The next update writes one: kubectl pulumi reconcile ${name} -n ${context.namespace}`;
    throw notFound(`There is no record of Stack ${name} that lists its resources.`, fix);
  }
  const document = describeTree({ namespace: context.namespace, name }, latest);
  return { document, blocks: treeBlocks(document, context.io.now()) };
}

/** Throws if the user may not read them; empty if there are none. */
export function visible<T>(seen: Seen<readonly T[]>): readonly T[] {
  if (seen.kind !== "hidden") return seen.kind === "seen" ? seen.value : [];
  throw new CliError(hiddenText(seen.hidden), {
    exitCode: exitCodes.forbidden,
    fix: "An administrator can grant it with the cluster role view, or a Role that allows it.",
  });
}

export function describeTree(of: { namespace: string; name: string }, latest: LatestResources): ResourceTree {
  const { record, content, unlisted } = latest;
  return documentOf("ResourceTree", {
    ...of,
    update: record.record.updateName,
    time: record.record.endTime,
    resources: content.resources.map(describeResource),
    omitted: content.omitted.resources,
    partial: content.partialResources === true,
    ...(unlisted !== undefined && { unlisted }),
  });
}

const describeResource = (resource: RecordedResource): TreeResource => ({
  type: urnType(resource.urn),
  name: urnName(resource.urn),
  ...resource,
});

export function treeBlocks(tree: ResourceTree, now: number): Block[] {
  const { name, update, time, resources } = tree;
  const count =
    resources.length === 0 ? "no resources" : resources.length === 1 ? "1 resource" : `${resources.length} resources`;
  return [
    heading(`Stack ${name}: ${count} after Update ${update} (${relative(time, now)})`),
    ...(resources.length > 0 ? [blank, verbatim(treeLines(resources).join("\n"))] : []),
    ...treeNotes(tree).flatMap((note) => [blank, text(toned("warning", note))]),
  ];
}

/** Why there may be other resources. */
function treeNotes({ omitted, partial, unlisted, update }: ResourceTree): string[] {
  return [
    ...(omitted > 0 ? [`${omitted} more resources did not fit into the record.`] : []),
    ...(partial ? [`There may be more resources: Update ${update} did not visit all of them.`] : []),
    ...(unlisted === undefined
      ? []
      : [`The list may be outdated: the record of the later Update ${unlisted} has none.`]),
  ];
}

/** Siblings in the order of the record. A resource whose parent did not fit into the record is shown at the top. */
export function treeLines(resources: readonly TreeResource[]): string[] {
  const known = new Set(resources.map(({ urn }) => urn));
  const children = Map.groupBy(resources, ({ parent }) => (parent !== undefined && known.has(parent) ? parent : ""));
  const lines: string[] = [];
  const seen = new Set<string>();
  const addBelow = (parent: string, indent: string): void => {
    const items = (children.get(parent) ?? []).filter(({ urn }) => !seen.has(urn));
    for (const [at, resource] of items.entries()) {
      seen.add(resource.urn);
      const [branch, inner] = parent === "" ? ["", ""] : at === items.length - 1 ? ["└─ ", "   "] : ["├─ ", "│  "];
      lines.push(`${indent}${branch}${lineOf(resource)}`);
      addBelow(resource.urn, `${indent}${inner}`);
    }
  };
  addBelow("", "");
  return lines;
}

const lineOf = ({ type, name, id }: TreeResource): string => `${type} ${name}${id === undefined ? "" : `  ${id}`}`;
