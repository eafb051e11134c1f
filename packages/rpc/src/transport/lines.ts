/** Lines of a byte stream, with a limit: a peer that never ends its line is disconnected, not buffered. */

export class LineTooLong extends Error {
  constructor(limit: number) {
    super(`a line is longer than ${limit} bytes`);
    this.name = "LineTooLong";
  }
}

const newline = 0x0a;

export async function* readLines(body: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let pending: Uint8Array[] = [];
  let pendingBytes = 0;
  for await (const chunk of body) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      if (pendingBytes + end - start > maxBytes) throw new LineTooLong(maxBytes);
      const last = chunk.subarray(start, end);
      yield decoder.decode(pending.length > 0 ? Buffer.concat([...pending, last]) : last);
      pending = [];
      pendingBytes = 0;
      start = end + 1;
    }
    if (start < chunk.length) {
      pending.push(chunk.subarray(start));
      pendingBytes += chunk.length - start;
      if (pendingBytes > maxBytes) throw new LineTooLong(maxBytes);
    }
  }
  if (pendingBytes > 0) yield decoder.decode(Buffer.concat(pending));
}

/** The text of a whole body, or undefined when it is larger than `maxBytes`. */
export async function readText(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}
