/** From a Kubernetes object, a resource ID or a URN to the Stack, commit and URN that created it. */
import { stackNameLabel, type UpdateRecord } from "@pko/api";
import { defined, resource, type KubeObject } from "@pko/kube";
import { urnType, type RecordContent, type RecordedResource } from "@pko/records";

import type { Report } from "../command.ts";
import type { Context } from "../context.ts";
import { documentOf, type Trace, type TraceMatch } from "../documents.ts";
import { exitCodes } from "../errors.ts";
import { updateRecords } from "../kinds.ts";
import { blank, fields, text, toned, type Block, type Field } from "../output/blocks.ts";
import { absolute } from "../output/time.ts";
import { look, seenValue } from "../visibility.ts";
import { objectKind } from "./object-kinds.ts";
import { byEnd, contentOf } from "./records.ts";
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
  const records = await readRecords(context);
  const [kind = "", name] = query.startsWith("urn:") ? [] : query.split("/", 2);
  const known = name === undefined ? undefined : objectKind(kind);
  const found = known
    ? await traceObject(context, { records, apiVersion: known.apiVersion, kind: known.kind, name: name ?? "" })
    : { owners: [], matches: await searchRecords(records, wantedFor(query, context)) };
  const document = documentOf("Trace", { query, ...found });
  const isFound = found.matches.length > 0 || document.belongsTo !== undefined;
  const exitCode = isFound ? exitCodes.success : exitCodes.notFound;
  return { document, blocks: traceBlocks(document, context.io.now()), exitCode };
}

async function readRecords({ client, namespace, allNamespaces }: Context): Promise<readonly UpdateRecord[]> {
  const list = client.list(updateRecords, { ...(!allNamespaces && { namespace }) });
  const seen = await look("the records of past updates", list);
  return visible(seen.kind === "seen" ? { kind: "seen", value: seen.value.items.toSorted(byEnd) } : seen);
}

/** A kind that this program does not know, or an ID with slashes: both are searched. */
export function wantedFor(query: string, { namespace }: Place): Wanted {
  if (query.startsWith("urn:pulumi:")) return { kind: "urn", urn: query };
  const [type = "", name, ...rest] = query.split("/");
  const isObject = name !== undefined && rest.length === 0 && /^[A-Za-z][\w.-]*$/.test(type) && type !== namespace;
  return isObject ? { kind: "object", type, id: `${namespace}/${name}` } : { kind: "id", id: query };
}

interface Subject {
  readonly records: readonly UpdateRecord[];
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
    const matches = await searchRecords(subject.records, wanted);
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

/** One match for each resource: from the latest record that lists it. `records` are sorted, the newest first. */
export async function searchRecords(records: readonly UpdateRecord[], wanted: Wanted): Promise<TraceMatch[]> {
  const matches = new Map<string, TraceMatch>();
  const latest = new Map<string, string>();
  for (const record of records) {
    const content = await contentOf(record);
    if (!content || content.resources.length === 0) continue;
    const stack = `${record.metadata.namespace ?? ""}/${record.record.stackName ?? ""}`;
    if (!latest.has(stack)) latest.set(stack, record.record.updateName);
    const exists = latest.get(stack) === record.record.updateName;
    for (const found of content.resources.filter((each) => isWanted(each, wanted))) {
      const key = `${stack} ${found.urn}`;
      const known = matches.get(key) ?? matchOf(record, found, exists);
      matches.set(key, creates(content, found.urn) ? { ...known, ...creation(record) } : known);
    }
  }
  return [...matches.values()];
}

const matchOf = (record: UpdateRecord, { urn, id }: RecordedResource, exists: boolean): TraceMatch =>
  defined({
    namespace: record.metadata.namespace ?? "",
    stack: record.record.stackName ?? "",
    pulumiStack: record.record.pulumiStack,
    urn,
    id,
    exists,
    revision: record.record.revision,
    update: record.record.updateName,
    time: record.record.endTime,
  });

const creation = ({ record }: UpdateRecord) => defined({ createdBy: record.updateName, revision: record.revision });

const creates = ({ events }: RecordContent, urn: string): boolean =>
  events.some(
    ({ event }) =>
      event.kind === "resource" &&
      event.urn === urn &&
      event.phase === "finished" &&
      /^(create|create-replacement|import)$/.test(event.op),
  );

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
    const hint = "It may be older than the records, in another namespace (-n or -A), or not created by a Stack.";
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
