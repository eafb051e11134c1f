/** The input that a worker executes, in a file that is mapped into memory: it can be read after the worker was killed. */
import { readFileSync, writeFileSync } from "node:fs";

const headerBytes = 8;
const maxBytes = 1024 * 1024;

export function currentInputWriter(file: string): (input: Uint8Array) => void {
  const bytes = Bun.mmap(file, { shared: true });
  const header = new DataView(bytes.buffer, bytes.byteOffset, headerBytes);
  return (input) => {
    const kept = input.subarray(0, maxBytes);
    bytes.set(kept, headerBytes);
    header.setUint32(0, kept.length);
    header.setUint32(4, header.getUint32(4) + 1);
  };
}

export function createInputFile(file: string): void {
  writeFileSync(file, Buffer.alloc(headerBytes + maxBytes));
}

/** `count`: how many inputs the worker has executed. */
export function readCurrentInput(file: string): { readonly input: Uint8Array; readonly count: number } {
  const bytes = readFileSync(file);
  const length = bytes.readUInt32BE(0);
  return { input: bytes.subarray(headerBytes, headerBytes + length), count: bytes.readUInt32BE(4) };
}
