/** From a Kubernetes object, a resource ID or a URN to the Stack, commit and URN that created it. */
import { stackNameLabel, type UpdateRecord } from "@pko/api";
import { defined, resource, type KubeObject } from "@pko/kube";
import { urnType, type RecordContent, type RecordedResource } from "@pko/records";

import type { Report } from "../command.ts";
import type { Context } from "../context.ts";
import { documentOf, type Trace, type TraceMatch } from "../documents.ts";
import { exitCodes } from "../errors.ts";
import { blank, fields, text, toned, type Block, type Field } from "../output/blocks.ts";
import { absolute } from "../output/time.ts";
import { look, seenValue } from "../visibility.ts";
import { objectKind } from "./object-kinds.ts";
import { allRecords, decodeRecords, isComplete, isPreview, stackNameIn, type ReadRecord } from "./records.ts";
import { visible } from "./tree-report.ts";

/** What to search for in records. */
export type Wanted =
  | { readonly kind: "urn"; readonly urn: string }
  | { readonly kind: "id"; readonly id: string }
  /** A resource of a type that ends with `type`, whatever provider created it. */
  | { readonly kind: "object"; readonly type: string; readonly id: string };

interface Place {
  readonly namespace: string;
}

export async function traceReport(context: Context, query: string): Promise<Report> {
  const records = await decodeRecords(visible(await allRecords(context)));
  const [kind = "", name] = query.startsWith("urn:") ? [] : query.split("/", 2);
  const known = name === undefined ? undefined : objectKind(kind);
  const found = known
    ? await traceObject(context, { query, records, apiVersion: known.apiVersion, kind: known.kind, name: name ?? "" })
    : { owners: [], matches: searchRecords(records, wantedFor(query, context)) };
  const document = documentOf("Trace", { query, ...found });
  const isFound = found.matches.length > 0 || document.belongsTo !== undefined;
  const exitCode = isFound ? exitCodes.success : exitCodes.notFound;
  return { document, blocks: traceBlocks(document, context.io.now()), exitCode };
}

/** A kind that this program does not know, or an ID with slashes: both are searched. */
export function wantedFor(query: string, { namespace }: Place): Wanted[] {
  if (query.startsWith("urn:pulumi:")) return [{ kind: "urn", urn: query }];
  const [type = "", name, ...rest] = query.split("/");
  const isObject = name !== undefined && rest.length === 0 && /^[A-Za-z][\w.-]*$/.test(type);
  const object = { kind: "object", type, id: `${namespace}/${name ?? ""}` } as const;
  return [...(isObject ? [object] : []), { kind: "id", id: query }];
}

interface Subject {
  readonly query: string;
  readonly records: readonly ReadRecord[];
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
}

interface Traced {
  readonly owners: string[];
  readonly matches: TraceMatch[];
  readonly belongsTo?: string;
}

/** A chain of owners is short; a longer one has a cycle. */
const mostOwners = 8;

/** The object itself, or else the nearest of its owners that a Stack created. */
async function traceObject(context: Context, subject: Subject): Promise<Traced> {
  const owners: string[] = [];
  let current = subject;
  for (;;) {
    const { namespace } = context;
    const wanted = { kind: "object", type: current.kind, id: `${namespace}/${current.name}` } as const;
    const literal = { kind: "id", id: subject.query } as const;
    const matches = searchRecords(subject.records, owners.length === 0 ? [wanted, literal] : [wanted]);
    if (matches.length > 0) return { owners, matches };
    const object = await readObject(context, current);
    const belongsTo = object?.metadata.labels?.[stackNameLabel] ?? ownStack(object);
    if (belongsTo !== undefined) return { owners, matches: [], belongsTo };
    const [owner] = object?.metadata.ownerReferences ?? [];
    if (!owner || owners.length >= mostOwners) return { owners, matches: [] };
    owners.push(`${owner.kind.toLowerCase()}/${owner.name}`);
    current = { ...subject, apiVersion: owner.apiVersion, kind: owner.kind, name: owner.name };
  }
}

const workspaceLabel = "auto.pulumi.com/workspace-name";

/** A Workspace has the name of its Stack. */
const ownStack = (object: KubeObject | undefined): string | undefined => object?.metadata.labels?.[workspaceLabel];

async function readObject(context: Context, { apiVersion, kind, name }: Subject): Promise<KubeObject | undefined> {
  const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
  const { client, namespace } = context;
  const [served] = await client.discover({ group: group ?? "", kind });
  if (!served || version === undefined) return undefined;
  const ref = { name, ...(served.namespaced && { namespace }) };
  return seenValue(await look(`${kind} ${name}`, client.get(resource<KubeObject>(served), ref)));
}

/**
 * One match for each resource: from the latest run that lists it, with the latest one that created or replaced it. `records`
 * are sorted, the newest first. Previews only plan.
 */
export function searchRecords(records: readonly ReadRecord[], wanted: readonly Wanted[]): TraceMatch[] {
  const matches = new Map<string, TraceMatch>();
  // Stacks with a later list, and resources that were deleted later.
  const [listed, deleted] = [new Set<string>(), new Set<string>()];
  for (const { record, content } of records.filter((each) => !isPreview(each.record))) {
    const stack = `${record.metadata.namespace ?? ""}/${stackNameIn(record)}`;
    for (const urn of finishedUrns(content, /^delete$/)) deleted.add(`${stack} ${urn}`);
    for (const found of content.resources.filter((each) => wanted.some((one) => isWanted(each, one)))) {
      const key = `${stack} ${found.urn}`;
      const exists = !listed.has(stack) && !deleted.has(key);
      if (!matches.has(key)) matches.set(key, matchOf(record, found, exists));
    }
    for (const urn of finishedUrns(content, creations)) {
      const known = matches.get(`${stack} ${urn}`);
      if (known && known.createdBy === undefined) matches.set(`${stack} ${urn}`, createdIn(known, record));
    }
    if (isComplete(content)) listed.add(stack);
  }
  return [...matches.values()];
}

const creations = /^(create|create-replacement|replace|import|import-replacement)$/;

const finishedUrns = ({ events }: RecordContent, op: RegExp): string[] =>
  events.flatMap(({ event }) =>
    event.kind === "resource" && event.phase === "finished" && op.test(event.op) ? [event.urn] : [],
  );

const matchOf = (record: UpdateRecord, { urn, id }: RecordedResource, exists: boolean): TraceMatch =>
  defined({
    namespace: record.metadata.namespace ?? "",
    stack: stackNameIn(record),
    pulumiStack: record.record.pulumiStack,
    urn,
    id,
    exists,
    revision: record.record.revision,
    update: record.record.updateName,
    time: record.record.endTime,
  });

/** The revision is that of the creation, or unknown. */
function createdIn(known: TraceMatch, { record }: UpdateRecord): TraceMatch {
  const { revision: _, ...match } = known;
  return { ...match, ...defined({ createdBy: record.updateName, revision: record.revision }) };
}

function isWanted({ urn, id }: RecordedResource, wanted: Wanted): boolean {
  switch (wanted.kind) {
    case "urn":
      return urn === wanted.urn;
    case "id":
      return id === wanted.id;
    case "object":
      return (id === wanted.id || id === wanted.id.split("/")[1]) && isType(urn, wanted.type);
  }
}

/** `kubernetes:apps/v1:Deployment` is a Deployment; plurals and groups are accepted. */
function isType(urn: string, wanted: string): boolean {
  const type = (urnType(urn).split(":").at(-1) ?? "").toLowerCase();
  const name = wanted.toLowerCase().split(".")[0] ?? "";
  return [type, `${type}s`, `${type}es`, type.replace(/y$/, "ies")].includes(name);
}

export function traceBlocks({ query, owners, matches, belongsTo }: Trace, now: number): Block[] {
  const path = owners.length > 0 ? [text(`${query} belongs to ${owners.join(", which belongs to ")}.`), blank] : [];
  if (belongsTo !== undefined) {
    return [...path, text(`The operator created it for the workspace of Stack ${belongsTo}.`)];
  }
  if (matches.length === 0) {
    const hint =
      "It may be older than the records, or not created by a Stack. Its Stack may be in another namespace: -A searches all. An object in another namespace than yours needs -n, which -A can be added to.";
    return [...path, text(toned("warning", `No record contains ${query}.`)), text(hint)];
  }
  return [...path, ...matches.flatMap((match, at) => [...(at > 0 ? [blank] : []), matchBlock(match, now)])];
}

function matchBlock(match: TraceMatch, now: number): Block {
  const { namespace, stack, pulumiStack, urn, id, exists, createdBy, revision, update, time } = match;
  const seen = exists ? `in Update ${update}` : `in Update ${update}; not in later ones`;
  const shown: readonly (readonly [string, string | undefined])[] = [
    ["Stack", `${namespace}/${stack}`],
    ["Pulumi stack", pulumiStack],
    ["URN", urn],
    ["ID", id],
    ["Created by", createdBy === undefined ? undefined : `Update ${createdBy}`],
    ["Revision", revision],
    ["Last seen", `${absolute(time, now)}, ${seen}`],
  ];
  return fields(shown.flatMap(([label, value]): Field[] => (value === undefined ? [] : [[label, value]])));
}
