/**
 * Reads refs over HTTP with version 2 of Git's protocol: one request finds out what the server supports, and every later look
 * at the repository is one request. Only a complete response shows that a ref does not exist.
 */
import {
  delimiterPacket,
  flushPacket,
  linePacket,
  PacketReader,
  parsePackets,
  textPacket,
  type Packet,
} from "./pkt-line.ts";
import {
  requestAdvertisement,
  requestCommand,
  service,
  unsupported,
  type Failure,
  type LsRefsOptions,
  type Reader,
  type UploadPack,
} from "./upload-pack.ts";

export type Discovered = { readonly kind: "discovered"; readonly uploadPack: UploadPack } | Failure;

export type ListedRefs =
  /** By name. An annotated tag has the commit that it points to. */
  { readonly kind: "listed"; readonly commits: ReadonlyMap<string, string> } | Failure;

/** With more names, all refs are listed. */
const maxPrefixes = 200;
const maxNameLength = 4096;

/** `repository` must not contain credentials. */
export async function discoverUploadPack(repository: URL, options: LsRefsOptions): Promise<Discovered> {
  const received = await requestAdvertisement(repository, options);
  if (received.kind !== "received") return received;
  const packets = parsePackets(received.value);
  const uploadPack = packets && parseCapabilities(packets);
  return uploadPack ? { kind: "discovered", uploadPack } : unsupported;
}

interface RefsWanted {
  readonly names: readonly string[];
  readonly uploadPack: UploadPack;
}

export async function listRefs(repository: URL, wanted: RefsWanted, options: LsRefsOptions): Promise<ListedRefs> {
  const command = { body: lsRefsCommand(wanted), reader: new RefReader(new Set(wanted.names)) };
  const received = await requestCommand(repository, command, options);
  return received.kind === "received" ? { kind: "listed", commits: received.value } : received;
}

export function lsRefsCommand({ names, uploadPack: { objectFormat } }: RefsWanted): string {
  const prefixes = names.length > maxPrefixes ? [] : names.filter(canExist);
  return [
    linePacket("command=ls-refs"),
    ...(objectFormat === undefined ? [] : [linePacket(`object-format=${objectFormat}`)]),
    delimiterPacket,
    linePacket("peel"),
    ...prefixes.map((name) => linePacket(`ref-prefix ${name}`)),
    flushPacket,
  ].join("");
}

// oxlint-disable-next-line no-control-regex -- Git allows no control characters in names
const canExist = (name: string): boolean => name.length <= maxNameLength && !/[\u0000-\u0020\u007F]/.test(name);

/** Undefined unless the server supports `ls-refs` of version 2. */
export function parseCapabilities(packets: readonly Packet[]): UploadPack | undefined {
  const lines = linesOfList(withoutServiceLine(packets));
  if (lines?.[0] !== "version 2") return undefined;
  const capabilities = new Map(lines.slice(1).map((line) => splitOnce(line, "=")));
  if (!capabilities.has("ls-refs")) return undefined;
  const objectFormat = capabilities.get("object-format");
  const features = new Set(capabilities.get("fetch")?.split(" "));
  const canFilter = features.has("filter") && features.has("shallow");
  return { ...(objectFormat && { objectFormat }), ...(canFilter && { canFilter }) };
}

/** Some servers introduce the list with the name of the service, as in older versions. */
function withoutServiceLine(packets: readonly Packet[]): readonly Packet[] {
  const [first, second] = packets;
  const isIntroduced = first?.kind === "line" && first.text === `# service=${service}` && second?.kind === "flush";
  return isIntroduced ? packets.slice(2) : packets;
}

/** The lines before the only flush packet, which must be the last one; otherwise the list may be incomplete. */
function linesOfList(packets: readonly Packet[]): readonly string[] | undefined {
  const lines = packets.slice(0, -1).map((packet) => (packet.kind === "line" ? packet.text : undefined));
  const isComplete = packets.at(-1)?.kind === "flush" && !lines.includes(undefined);
  return isComplete ? (lines as string[]) : undefined;
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

const objectId = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
const peeledForm = /(?:^| )peeled:([0-9a-f]+)(?: |$)/;

/**
 * Keeps only refs with these names: a prefix also matches longer ones, and a server may ignore it. The flush packet must be the
 * last one; otherwise the list may be incomplete.
 */
export class RefReader implements Reader<ReadonlyMap<string, string>> {
  readonly #names: ReadonlySet<string>;
  readonly #packets = new PacketReader();
  readonly #commits = new Map<string, string>();
  #isComplete = false;
  #isUnderstood = true;

  constructor(names: ReadonlySet<string>) {
    this.#names = names;
  }

  add(part: Uint8Array): boolean {
    const packets = this.#packets.read(part);
    this.#isUnderstood &&= packets?.every((packet) => this.#addPacket(textPacket(packet))) === true;
    return this.#isUnderstood;
  }

  end(): ReadonlyMap<string, string> | undefined {
    const isWhole = this.#isUnderstood && this.#isComplete && this.#packets.isBetweenPackets;
    return isWhole ? this.#commits : undefined;
  }

  #addPacket(packet: Packet): boolean {
    if (this.#isComplete) return false;
    if (packet.kind === "line") return this.#addLine(packet.text);
    this.#isComplete = packet.kind === "flush";
    return this.#isComplete;
  }

  #addLine(line: string): boolean {
    const [id, rest] = splitOnce(line, " ");
    const [name, attributes] = splitOnce(rest, " ");
    const commit = peeledForm.exec(attributes)?.[1] ?? id;
    if (!objectId.test(id) || !objectId.test(commit) || name === "") return false;
    if (this.#names.has(name)) this.#commits.set(name, commit);
    return true;
  }
}
