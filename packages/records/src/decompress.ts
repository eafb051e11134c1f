/** From the text of an UpdateRecord to its JSON. Runs in browsers, too. */

/** Limits what a hostile record costs its reader. */
const maxDecodedBytes = 32 * 1024 * 1024;

/** Undefined if it is damaged. */
export async function decompress(encoded: string): Promise<unknown> {
  try {
    const compressed = new Blob([Uint8Array.fromBase64(encoded)]).stream();
    return JSON.parse(await readLimited(compressed.pipeThrough(new DecompressionStream("gzip")))) as unknown;
  } catch {
    return undefined;
  }
}

async function readLimited(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let [text, bytes] = ["", 0];
  for await (const chunk of stream) {
    bytes += chunk.byteLength;
    if (bytes > maxDecodedBytes) throw new RangeError("the record is too large");
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
