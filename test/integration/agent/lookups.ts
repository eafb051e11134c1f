/** Serves DNS on this machine, looks up names, and prints what was found. */
import { createSocket } from "node:dgram";
import { once } from "node:events";

import { systemLookup } from "@pko/git";

export interface Lookups {
  readonly absolute: readonly string[];
  /** A short name, which is found in the search domain. */
  readonly searched: readonly string[];
  readonly fromHostsFile: readonly string[];
  readonly unknown: "found" | "rejected";
  /** How many of the names without a response were given up before the others were found. */
  readonly endedBefore: number;
}

const silentNames = 100;
const found = new Set(["git.example.com", "host.example.org"]);

const server = createSocket("udp4");
server.on("message", (query, { port, address }) => {
  const response = responseTo(query);
  if (response) server.send(response, port, address);
});
server.bind(53, "127.0.0.1");
await once(server, "listening");

/** Names below `silent` get no response, for those below `broken` the server fails, and other unknown ones do not exist. */
function responseTo(query: Buffer): Buffer | undefined {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += length + 1;
  }
  if (labels.includes("silent")) return undefined;
  const isKnown = found.has(labels.join("."));
  const isAddress = isKnown && query.readUInt16BE(at + 1) === 1;
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  header.writeUInt16BE(labels.includes("broken") ? 0x8182 : isKnown ? 0x8180 : 0x8183, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(isAddress ? 1 : 0, 6);
  // The name of the question, an address, for one second, 192.0.2.1.
  const answer = Buffer.from(isAddress ? [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 192, 0, 2, 1] : []);
  return Buffer.concat([header, query.subarray(12, at + 5), answer]);
}

let ended = 0;
for (let index = 0; index < silentNames; index++) {
  systemLookup(`host-${index}.silent`).catch(() => ended++);
}
const [absolute, searched, fromHostsFile, unknown] = await Promise.all([
  systemLookup("host.example.org"),
  systemLookup("git"),
  systemLookup("alias.internal"),
  systemLookup("missing.example.org").then(
    () => "found" as const,
    () => "rejected" as const,
  ),
]);
console.log(JSON.stringify({ absolute, searched, fromHostsFile, unknown, endedBefore: ended } satisfies Lookups));
process.exit(0);
