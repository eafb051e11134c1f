/** An artifact of Flux: fetched, its digest checked, then unpacked. Nothing of it is looked at before it is known. */
import { createHash, timingSafeEqual } from "node:crypto";
import { open, rm } from "node:fs/promises";
import type { FluxSource } from "@pko/rpc";
import { trustedAuthorities, type NetworkPolicy } from "@pko/git";
import { get, statusFailure } from "../net/http.ts";
import { done, failed, type Outcome } from "../outcome.ts";
import { defaultLimits, untar } from "./untar.ts";

/** The most bytes that are fetched: an artifact is source code. */
const maxPackedBytes = 512 * 1024 * 1024;
const digestForm = /^(sha256|sha384|sha512):([0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})$/;

interface FluxContext {
  /** The file to fetch into; it is removed again. */
  readonly archive: string;
  readonly policy: NetworkPolicy;
  /** The agent's environment, which may name authorities to trust. */
  readonly inherited: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}

export async function fetchFlux(source: FluxSource, into: string, context: FluxContext): Promise<Outcome<string>> {
  const digest = digestForm.exec(source.digest);
  if (!digest) return failed("sourceInvalid", "the artifact's digest is not of the form sha256:…");
  const url = URL.parse(source.url);
  if (!url) return failed("sourceInvalid", "the artifact's URL is not a URL");
  if (url.username || url.password) return failed("sourceInvalid", "the artifact's URL holds credentials");
  try {
    const sum = await download({ url, algorithm: digest[1] ?? "" }, context);
    if (!sum.ok) return sum;
    if (!isEqual(sum.value, digest[2] ?? "")) {
      return failed("sourceRefused", "the artifact is not the one that was announced: its digest is another");
    }
    const unpacked = await untar(context.archive, into, limitsOf(source));
    return unpacked.ok ? done(source.digest) : unpacked;
  } finally {
    await rm(context.archive, { force: true });
  }
}

function limitsOf(source: FluxSource): typeof defaultLimits {
  const maxBytes = source.maxUnpackedBytes ?? defaultLimits.maxBytes;
  return maxBytes < 0 ? { ...defaultLimits, maxBytes: Number.POSITIVE_INFINITY } : { ...defaultLimits, maxBytes };
}

interface Download {
  readonly url: URL;
  readonly algorithm: string;
}

async function download({ url, algorithm }: Download, context: FluxContext): Promise<Outcome<string>> {
  // Flux serves its artifacts inside the cluster, over http; the digest is what vouches for them.
  const policy = { ...context.policy, allowHttp: true };
  const ca = url.protocol === "https:" ? await trustedAuthorities(context.inherited) : undefined;
  const got = await get(url, { policy, signal: context.signal, ...(ca && { ca }) });
  if (!got.ok) return got;
  const { response } = got.value;
  const { status } = response;
  if (status !== 200) {
    response.close();
    if (status !== 404 && status !== 410) return statusFailure("the artifact", status);
    // A controller that starts anew makes its artifacts anew, and one that has moved on announces another.
    return failed("sourceUnavailable", `the artifact: not found (${status}): its source has lost or replaced it`);
  }
  const hash = createHash(algorithm);
  const file = await open(context.archive, "w", 0o600);
  try {
    let bytes = 0;
    for await (const chunk of response.body) {
      bytes += chunk.length;
      if (bytes > maxPackedBytes) return failed("sourceRefused", `the artifact is larger than ${maxPackedBytes} bytes`);
      hash.update(chunk);
      await file.write(chunk);
    }
  } catch (error) {
    if (context.signal.aborted) throw error;
    return failed("sourceUnavailable", "the artifact's transfer broke off");
  } finally {
    response.close();
    await file.close();
  }
  return done(hash.digest("hex"));
}

function isEqual(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}
