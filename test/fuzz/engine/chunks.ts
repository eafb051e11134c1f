/** The bytes in chunks whose sizes depend on the bytes, so that the same input always has the same chunks. */
export async function* chunks(input: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < input.length;) {
    const size = 1 + ((input[at] ?? 0) % 37) * (1 + ((input.length + at) % 5));
    yield input.slice(at, at + size);
    at += size;
  }
}
