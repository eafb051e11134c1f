/** Bundles the page of the console. */

export interface Asset {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly contentType: string;
  /** Of the bytes, for the name of the file and the ETag. */
  readonly hash: string;
}

/** By path: `/index.html`, and `/assets/NAME` with a name that changes with its content. */
export type Assets = ReadonlyMap<string, Asset>;

export async function buildConsole(): Promise<Assets> {
  const bytes = new TextEncoder().encode("<!doctype html><title>Pulumi</title>");
  return new Map([["/index.html", { bytes, contentType: "text/html; charset=utf-8", hash: "0" }]]);
}
