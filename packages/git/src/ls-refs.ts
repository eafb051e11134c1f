/**
 * Reads refs over HTTP with version 2 of Git's protocol: one request finds out what the server supports, and every later look
 * at the repository is one request. What is not understood is left to git, which also explains it: only a complete response
 * shows that a ref does not exist.
 */
import { request, type HttpOptions, type HttpResponse } from "./http.ts";
import { delimiterPacket, flushPacket, linePacket, parsePackets, type Packet } from "./pkt-line.ts";

/** What a server that supports `ls-refs` has announced. */
export interface UploadPack {
  /** Of the object IDs, such as `sha256`; absent if the server names none. */
  readonly objectFormat?: string;
}

type Failure =
  /** The status is not 200. */
  | { readonly kind: "status"; readonly status: number; readonly retryAfterSeconds?: number }
  /** The URL is not allowed. */
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "unreachable"; readonly message: string; readonly error?: unknown }
  /** The server returned a page for people, such as one to sign in. */
  | { readonly kind: "page" }
  /** The server does not support version 2, or its response is not understood. */
  | { readonly kind: "unsupported" };

export type Discovered = { readonly kind: "discovered"; readonly uploadPack: UploadPack } | Failure;

export type ListedRefs =
  /** By name. An annotated tag has the commit that it points to. */
  { readonly kind: "listed"; readonly commits: ReadonlyMap<string, string> } | Failure;

export type LsRefsOptions = Omit<HttpOptions, "method" | "redirects" | "body" | "headers">;

const service = "git-upload-pack";
const unsupported = { kind: "unsupported" } as const;
/** A list of a hundred thousand refs fits. */
const maxBytes = 16 * 1024 * 1024;
/** With more names, all refs are listed. */
const maxPrefixes = 200;
const maxNameLength = 4096;
const version2 = { "git-protocol": "version=2", "user-agent": "git/pulumi-operator" };

/** `repository` must not contain credentials. */
export async function discoverUploadPack(repository: URL, options: LsRefsOptions): Promise<Discovered> {
  const packets = await requestPackets(`${baseOf(repository)}/info/refs?service=${service}`, {
    ...options,
    headers: { ...version2, accept: `application/x-${service}-advertisement` },
  });
  if (packets.kind !== "packets") return packets;
  const uploadPack = parseCapabilities(packets.packets);
  return uploadPack ? { kind: "discovered", uploadPack } : unsupported;
}

interface RefsWanted {
  readonly names: readonly string[];
  readonly uploadPack: UploadPack;
}

export async function listRefs(repository: URL, wanted: RefsWanted, options: LsRefsOptions): Promise<ListedRefs> {
  const packets = await requestPackets(`${baseOf(repository)}/${service}`, {
    ...options,
    method: "POST",
    headers: {
      ...version2,
      accept: `application/x-${service}-result`,
      "content-type": `application/x-${service}-request`,
    },
    body: lsRefsCommand(wanted),
  });
  if (packets.kind !== "packets") return packets;
  const commits = parseRefPackets(packets.packets, new Set(wanted.names));
  return commits ? { kind: "listed", commits } : unsupported;
}

const baseOf = (repository: URL): string => repository.href.replace(/\/$/, "");

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
  return objectFormat ? { objectFormat } : {};
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

/** Only refs with these names: a prefix also matches longer names. Undefined if the list is not understood. */
export function parseRefPackets(
  packets: readonly Packet[],
  names: ReadonlySet<string>,
): ReadonlyMap<string, string> | undefined {
  const lines = linesOfList(packets);
  const commits = new Map<string, string>();
  for (const line of lines ?? []) {
    const [id, rest] = splitOnce(line, " ");
    const [name, attributes] = splitOnce(rest, " ");
    const commit = peeledForm.exec(attributes)?.[1] ?? id;
    if (!objectId.test(id) || !objectId.test(commit) || name === "") return undefined;
    if (names.has(name)) commits.set(name, commit);
  }
  return lines && commits;
}

type Packets = { readonly kind: "packets"; readonly packets: readonly Packet[] } | Failure;

async function requestPackets(url: string, options: HttpOptions): Promise<Packets> {
  const result = await requestTwice(new URL(url), { ...options, redirects: "return" });
  if (result.kind !== "answered") return result;
  const { response } = result;
  try {
    const bytes = await readAll(response);
    if (response.status < 300 && mediaType(response) === "text/html") return { kind: "page" };
    if (response.status !== 200) return { kind: "status", status: response.status, ...retryAfter(response) };
    if (mediaType(response) !== options.headers?.["accept"]) return unsupported;
    const packets = bytes && parsePackets(bytes);
    return packets ? { kind: "packets", packets } : unsupported;
  } catch (error) {
    if (options.signal?.aborted) throw error;
    // The connection broke while the body was read.
    return { kind: "unreachable", message: `${new URL(url).host} ended the connection`, error };
  } finally {
    response.close();
  }
}

const mediaType = (response: HttpResponse): string | undefined =>
  response.header("content-type")?.split(";")[0]?.trim().toLowerCase();

/** A server may close an idle connection at the moment at which it is used again. */
async function requestTwice(url: URL, options: HttpOptions): ReturnType<typeof request> {
  const result = await request(url, options);
  const isBroken = result.kind === "unreachable" && errorCode(result.error) === "ECONNRESET";
  return isBroken ? await request(url, options) : result;
}

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}

/** Undefined if there is more. Reads the body of an error, too, so that the connection can be used again. */
async function readAll(response: HttpResponse): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body) {
    size += chunk.length;
    if (size > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function retryAfter(response: HttpResponse): { readonly retryAfterSeconds?: number } {
  const text = response.header("retry-after") ?? "";
  if (/^\d+$/.test(text)) return { retryAfterSeconds: Number(text) };
  const [at, now] = [Date.parse(text), Date.parse(response.header("date") ?? "")];
  return Number.isNaN(at) || Number.isNaN(now) ? {} : { retryAfterSeconds: Math.max(0, (at - now) / 1000) };
}
