/** Requests to forges with the operator's network policy, proxies and CAs. */
import { forgeHttp, type ForgeCredentials, type ForgeHttp, type ForgeHttpOptions } from "@pko/forge";
import { trustedCaCertificates } from "@pko/git";

export type ForgeSettings = Pick<ForgeHttpOptions, "policy" | "environment" | "lookup" | "timeoutMs">;

export type OpenHttp = (credentials: ForgeCredentials, signal: AbortSignal) => Promise<ForgeHttp>;

/** The CAs that the operator trusts are files, which may be replaced. */
const caMs = 5 * 60_000;

export function openHttp(settings: ForgeSettings, monotonic: () => number): OpenHttp {
  let known: { readonly pem: Promise<string | undefined>; readonly at: number } | undefined;
  return async (credentials, signal) => {
    const now = monotonic();
    if (!known || now - known.at > caMs) {
      known = { pem: trustedCaCertificates(settings.environment ?? {}), at: now };
    }
    const ca = credentials.ca ?? (await known.pem);
    return forgeHttp({ ...settings, signal, ...(ca !== undefined && { ca }) });
  };
}
