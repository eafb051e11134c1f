/** For tests: archives with entries that normal tools do not write. */

export interface TarEntry {
  readonly path: string;
  readonly type: string;
  readonly body?: string;
  readonly isExecutable?: true;
  readonly link?: string;
  readonly rawName?: Buffer;
  /** Records of an extended header before the entry. */
  readonly pax?: Readonly<Record<string, string>>;
  /** Writes the name as a GNU long-name record. */
  readonly gnuLong?: boolean;
}

export function tarOf(entries: readonly TarEntry[]): Buffer<ArrayBuffer> {
  return Buffer.concat([...entries.flatMap(entryBlocks), Buffer.alloc(1024)]);
}

function entryBlocks(entry: TarEntry): Buffer[] {
  const blocks: Buffer[] = [];
  if (entry.pax) {
    const records = Object.entries(entry.pax).map(([key, value]) => paxRecord(key, value));
    blocks.push(...plainBlocks({ path: "pax", type: "x", body: records.join("") }));
  }
  if (entry.gnuLong) blocks.push(...plainBlocks({ path: "long", type: "L", body: `${entry.path}\0` }));
  return [...blocks, ...plainBlocks(entry.gnuLong ? { ...entry, path: "short" } : entry)];
}

function plainBlocks(entry: TarEntry): Buffer[] {
  const body = Buffer.from(entry.body ?? "");
  const header = Buffer.alloc(512);
  if (entry.rawName) entry.rawName.copy(header);
  else header.write(entry.path, 0, 100);
  header.write(entry.isExecutable ? "0000755\0" : "0000644\0", 100);
  header.write(`${body.length.toString(8).padStart(11, "0")}\0`, 124);
  header.write(entry.type, 156);
  header.write(entry.link ?? "", 157, 100);
  header.write("ustar\u000000", 257);
  header.fill(0x20, 148, 156);
  let sum = 0;
  for (const byte of header) sum += byte;
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return [header, body, Buffer.alloc((512 - (body.length % 512)) % 512)];
}

function paxRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  let length = rest.length + 1;
  while (String(length).length + rest.length !== length) length += 1;
  return `${length}${rest}`;
}
