/**
 * Which files differ between two commits, without their history or content: the trees that differ are fetched level by level, and
 * all of a level with one request (docs/adr/0028-path-filters.md has the measurements).
 */
import { readPack, type ObjectFormat, type PackObject, type PackObjects } from "./pack.ts";
import { delimiterPacket, flushPacket, linePacket, parseRawPackets } from "./pkt-line.ts";
import {
  allBytes,
  requestCommand,
  unsupported,
  type Failure,
  type LsRefsOptions,
  type UploadPack,
} from "./upload-pack.ts";

export type TreeDiff =
  | { readonly kind: "compared"; readonly paths: readonly string[] }
  /** `reason`: a clause. */
  | { readonly kind: "unknown"; readonly reason: string }
  | Failure;

interface CommitsToCompare {
  readonly from: string;
  readonly to: string;
  readonly uploadPack: UploadPack;
}

/** With more, comparing would cost more than running. */
const maxPaths = 10_000;
const maxTrees = 4000;
/** Of all files that differ: the result stays in memory. */
const maxPathChars = 2 * 1024 * 1024;
const maxPathLength = 4096;
/** A directory counts each time that it appears. */
const maxEntries = 200_000;
const maxWants = 500;
/** Of all objects of a comparison: a hostile server must not fill the memory. */
const maxBytes = 16 * 1024 * 1024;
const maxResponseBytes = 4 * 1024 * 1024;

export async function compareCommits(
  repository: URL,
  { from, to, uploadPack }: CommitsToCompare,
  options: LsRefsOptions,
): Promise<TreeDiff> {
  if (!uploadPack.canFilter) return unknown("the Git server does not support partial fetches");
  const fetch = objectFetcher(repository, uploadPack, options);
  try {
    const commits = await fetch([from, to], "deepen 1");
    if (commits.kind !== "fetched") return commits;
    const [before, after] = [rootTree(commits.objects, from), rootTree(commits.objects, to)];
    return await diffTrees({ path: "", before, after }, fetch);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    return unknown(error instanceof Error ? error.message : String(error));
  }
}

const unknown = (reason: string): NotCompared => ({ kind: "unknown", reason });

type NotCompared = Exclude<TreeDiff, { kind: "compared" }>;
type Fetched = { readonly kind: "fetched"; readonly objects: PackObjects } | NotCompared;
export type FetchObjects = (ids: readonly string[], ...lines: readonly string[]) => Promise<Fetched>;

function objectFetcher(repository: URL, { objectFormat }: UploadPack, options: LsRefsOptions): FetchObjects {
  const format: ObjectFormat = objectFormat === "sha256" ? "sha256" : "sha1";
  const budget = { bytes: maxBytes };
  return async (ids, ...lines) => {
    const objects = new Map<string, PackObject>();
    for (let at = 0; at < ids.length; at += maxWants) {
      const wanted = ids.slice(at, at + maxWants);
      const command = { body: fetchCommand(wanted, { objectFormat, lines }), reader: allBytes() };
      const received = await requestCommand(repository, command, { ...options, maxBytes: maxResponseBytes });
      if (received.kind !== "received") return received;
      const pack = packIn(received.value);
      if (!Buffer.isBuffer(pack)) return pack;
      for (const [id, object] of readPack(pack, { format, maxObjects: wanted.length, budget })) objects.set(id, object);
    }
    return { kind: "fetched", objects };
  };
}

interface FetchDetails {
  readonly objectFormat: string | undefined;
  readonly lines: readonly string[];
}

/** `tree:0` leaves out everything that is not named. */
export function fetchCommand(ids: readonly string[], { objectFormat, lines }: FetchDetails): string {
  return [
    linePacket("command=fetch"),
    ...(objectFormat === undefined ? [] : [linePacket(`object-format=${objectFormat}`)]),
    delimiterPacket,
    linePacket("no-progress"),
    linePacket("filter tree:0"),
    ...lines.map(linePacket),
    ...[...new Set(ids)].map((id) => linePacket(`want ${id}`)),
    linePacket("done"),
    flushPacket,
  ].join("");
}

/** The response has sections; the pack is in the last one, in packets whose first byte is the channel. */
function packIn(bytes: Uint8Array): Buffer | NotCompared {
  const packets = parseRawPackets(bytes);
  if (!packets) return unsupported;
  const lines = packets.flatMap((packet) => (packet.kind === "line" ? [packet.data] : []));
  const error = lines.find((line) => line.subarray(0, 4).toString("latin1") === "ERR ");
  if (error) return unknown(`the Git server reported: ${error.toString("utf8", 4).trim()}`);
  const start = lines.findIndex((line) => line.toString("latin1").trimEnd() === "packfile");
  if (start < 0) return unsupported;
  const data = lines.slice(start + 1);
  const fatal = data.find(([channel]) => channel === 3);
  if (fatal) return unknown(`the Git server reported: ${fatal.toString("utf8", 1).trim()}`);
  return Buffer.concat(data.filter(([channel]) => channel === 1).map((packet) => packet.subarray(1)));
}

function rootTree(commits: PackObjects, id: string): string {
  const commit = commits.get(id);
  const [, tree] = /^tree ([0-9a-f]+)\n/.exec(commit?.content.toString("latin1", 0, 80) ?? "") ?? [];
  if (commit?.type !== "commit" || tree === undefined) throw new Error(`the Git server did not send commit ${id}`);
  return tree;
}

/** A directory that differs; undefined where it does not exist. */
export interface Difference {
  readonly path: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** A small repository can describe a huge one: directories with the same content are one object, but many paths. */
export async function diffTrees(root: Difference, fetch: FetchObjects): Promise<TreeDiff> {
  const paths: string[] = [];
  const left: DiffBudget = { entries: maxEntries, pathChars: maxPathChars };
  let fetched = 0;
  for (let level = root.before === root.after ? [] : [root]; level.length > 0;) {
    const ids = [...new Set(level.flatMap(({ before, after }) => [before, after]))].filter((id) => id !== undefined);
    fetched += ids.length;
    if (fetched > maxTrees) return unknown(tooManyDirectories);
    const trees = await fetch(ids);
    if (trees.kind !== "fetched") return trees;
    const next: Difference[] = [];
    for (const each of level) {
      for (const entry of differingEntries(each, trees.objects, left)) {
        const problem = problemOf(entry, left);
        if (problem !== undefined) return unknown(problem);
        if (entry.isFile) paths.push(entry.path);
        if (entry.before !== undefined || entry.after !== undefined) next.push(entry);
        if (paths.length > maxPaths) return unknown(tooManyFiles);
        if (next.length > maxTrees) return unknown(tooManyDirectories);
      }
    }
    level = next;
  }
  return { kind: "compared", paths: paths.toSorted() };
}

const tooManyFiles = "too many files differ";
const tooManyDirectories = "too many directories differ";

/** What a comparison may still use. */
interface DiffBudget {
  entries: number;
  pathChars: number;
}

function problemOf({ path, isFile, isSubmodule }: DifferingEntry, left: DiffBudget): string | undefined {
  if (path.length > maxPathLength) return `a path is longer than ${maxPathLength} characters`;
  if (isSubmodule) return `the submodule ${path} differs`;
  if (isFile) left.pathChars -= path.length;
  return left.pathChars < 0 ? tooManyFiles : undefined;
}

/** `before` and `after` are set only for directories: a file may have replaced one. */
interface DifferingEntry extends Difference {
  readonly isFile: boolean;
  readonly isSubmodule: boolean;
}

const directoryMode = "40000";
const submoduleMode = "160000";

function* differingEntries(
  { path, before, after }: Difference,
  trees: PackObjects,
  left: DiffBudget,
): Generator<DifferingEntry> {
  const [old, now] = [entriesOf(before, trees, left), entriesOf(after, trees, left)];
  for (const key of new Set([...old.keys(), ...now.keys()])) {
    const sides = [old.get(key), now.get(key)] as const;
    if (sides[0]?.id === sides[1]?.id && sides[0]?.mode === sides[1]?.mode) continue;
    const treeOf = (entry: TreeEntry | undefined) => (entry?.mode === directoryMode ? entry.id : undefined);
    const name = Buffer.from(key, "latin1").toString("utf8");
    yield {
      path: path === "" ? name : `${path}/${name}`,
      before: treeOf(sides[0]),
      after: treeOf(sides[1]),
      isFile: sides.some((entry) => entry !== undefined && entry.mode !== directoryMode),
      isSubmodule: sides.some((entry) => entry?.mode === submoduleMode),
    };
  }
}

interface TreeEntry {
  readonly mode: string;
  readonly id: string;
}

/** By the bytes of the name, as latin1: names that are not UTF-8 must not become the same. Each entry is `MODE NAME`, a zero byte, and the object ID in binary form. */
function entriesOf(id: string | undefined, trees: PackObjects, left: DiffBudget): ReadonlyMap<string, TreeEntry> {
  const entries = new Map<string, TreeEntry>();
  if (id === undefined) return entries;
  const tree = trees.get(id);
  if (tree?.type !== "tree") throw new Error(`the Git server did not send tree ${id}`);
  const { content } = tree;
  const hashBytes = id.length / 2;
  for (let at = 0; at < content.length;) {
    const space = content.indexOf(0x20, at);
    const end = content.indexOf(0, space);
    if (space < 0 || end < 0 || end + 1 + hashBytes > content.length) throw new Error(`tree ${id} is damaged`);
    if (--left.entries < 0) throw new Error("the directories that differ are too large");
    const name = content.toString("latin1", space + 1, end);
    if (entries.has(name)) throw new Error(`tree ${id} is damaged`);
    const object = content.toString("hex", end + 1, end + 1 + hashBytes);
    // Some programs have written modes such as 040000.
    const mode = content.toString("latin1", at, space).replace(/^0+/, "");
    entries.set(name, { mode, id: object });
    at = end + 1 + hashBytes;
  }
  return entries;
}
