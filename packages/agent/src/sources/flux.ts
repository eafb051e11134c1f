/** Fetches a Flux artifact, verifies its digest, then unpacks it. Nothing is parsed before the digest is verified. */
import { createHash, timingSafeEqual } from "node:crypto";
import { open, rm } from "node:fs/promises";
import type { FluxSource } from "@pko/rpc";
import { trustedCaCertificates, type NetworkPolicy } from "@pko/git";
import { get, statusFailure } from "../net/http.ts";
import { done, failed, type Outcome } from "../outcome.ts";
import { defaultLimits, untar } from "./untar.ts";

/** The limit for a download: an artifact contains source code. */
const maxPackedBytes = 512 * 1024 * 1024;
const digestForm = /^(sha256|sha384|sha512):([0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})$/;

interface FluxContext {
  /** The file to download to; it is deleted afterwards. */
  readonly archive: string;
  readonly policy: NetworkPolicy;
  /** The agent's environment, which may name CAs to trust. */
  readonly inherited: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}

export async function fetchFlux(source: FluxSource, into: string, context: FluxContext): Promise<Outcome<string>> {
  const digest = digestForm.exec(source.digest);
  if (!digest)
    return failed(
      "sourceInvalid",
      "the artifact's digest does not have the form sha256:…; check the Flux source's status",
    );
  const url = URL.parse(source.url);
  if (!url) return failed("sourceInvalid", "the artifact's URL is not valid; check the Flux source's status");
  if (url.username || url.password)
    return failed("sourceInvalid", "the artifact's URL contains credentials, which is not supported");
  try {
    const sum = await download({ url, algorithm: digest[1] ?? "" }, context);
    if (!sum.ok) return sum;
    if (!isEqual(sum.value, digest[2] ?? "")) {
      return failed(
        "sourceRefused",
        "the artifact's digest differs from the one in the Flux source's status; reconcile the Flux source to publish it again",
      );
    }
    const unpacked = await untar(context.archive, into, limitsFor(source));
    return unpacked.ok ? done(source.digest) : unpacked;
  } finally {
    await rm(context.archive, { force: true });
  }
}

function limitsFor(source: FluxSource): typeof defaultLimits {
  const maxBytes = source.maxUnpackedBytes ?? defaultLimits.maxBytes;
  return maxBytes < 0 ? { ...defaultLimits, maxBytes: Number.POSITIVE_INFINITY } : { ...defaultLimits, maxBytes };
}

interface Download {
  readonly url: URL;
  readonly algorithm: string;
}

async function download({ url, algorithm }: Download, context: FluxContext): Promise<Outcome<string>> {
  // Flux serves artifacts inside the cluster over http; the digest protects their integrity.
  const policy = { ...context.policy, allowHttp: true };
  const ca = url.protocol === "https:" ? await trustedCaCertificates(context.inherited) : undefined;
  const got = await get(url, { policy, signal: context.signal, ...(ca && { ca }) });
  if (!got.ok) return got;
  const { response } = got.value;
  const { status } = response;
  if (status !== 200) {
    response.close();
    if (status !== 404 && status !== 410) return statusFailure("the artifact", status);
    // A restarted source controller recreates its artifacts, and a newer artifact has another URL.
    return failed(
      "sourceUnavailable",
      `the artifact does not exist (HTTP ${status}), because its source lost or replaced it; the operator retries`,
    );
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
    return failed("sourceUnavailable", "the download of the artifact was interrupted; the operator retries");
  } finally {
    response.close();
    await file.close();
  }
  return done(hash.digest("hex"));
}

function isEqual(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}
