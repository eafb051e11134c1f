/** Where a repository has moved to: git was told not to follow redirects, so every hop is looked at here. */
import { resolveHost, type NetworkPolicy } from "@pko/git";

const suffix = "/info/refs?service=git-upload-pack";
const mostHops = 5;
const answerMs = 20_000;

interface Move {
  readonly from: URL;
  readonly policy: NetworkPolicy;
  readonly authorization?: string;
  /** PEM of the authorities to trust besides the system's. */
  readonly ca?: string;
  readonly signal: AbortSignal;
}

/** The repository's address in the end; undefined when it is none that we may ask. */
export async function followMove(move: Move): Promise<URL | undefined> {
  let url = new URL(move.from.href.replace(/\/$/, "") + suffix);
  for (let hop = 0; hop < mostHops; hop++) {
    if (!(await mayAsk(url, move.policy))) return undefined;
    const { isThere, next } = await ask(url, move);
    if (!next) return isThere && hop > 0 ? new URL(url.href.slice(0, -suffix.length)) : undefined;
    url = next;
  }
  return undefined;
}

async function mayAsk(url: URL, policy: NetworkPolicy): Promise<boolean> {
  const isSpoken = url.protocol === "https:" || (policy.allowHttp && url.protocol === "http:");
  return isSpoken && (await resolveHost(url.hostname, policy)).kind === "resolved";
}

interface Answer {
  readonly isThere: boolean;
  readonly next: URL | null;
}

async function ask(url: URL, { from, authorization, ca, signal }: Move): Promise<Answer> {
  const response = await fetch(url, {
    redirect: "manual",
    // Credentials stay with the origin they are for.
    headers: authorization && url.origin === from.origin ? { authorization } : {},
    signal: AbortSignal.any([signal, AbortSignal.timeout(answerMs)]),
    ...(ca !== undefined && { tls: { ca } }),
  });
  await response.body?.cancel();
  const location = response.headers.get("location");
  const isMoved = response.status >= 300 && response.status < 400 && location !== null;
  return { isThere: response.ok && url.href.endsWith(suffix), next: isMoved ? URL.parse(location, url) : null };
}
