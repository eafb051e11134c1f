/** Who we are to which API server. kubeconfig.ts and in-cluster.ts make these. */
import { readFile } from "node:fs/promises";

import { systemClock, type Clock } from "../clock.ts";
import type { TlsSettings } from "./http.ts";

/** What proves our identity for a while. */
export interface Access {
  readonly token?: string;
  readonly tls: TlsSettings;
}

export interface Credentials {
  /** Such as `https://10.96.0.1:443`. */
  readonly server: string;
  /** The namespace that the credentials name as their own. */
  readonly namespace?: string;
  /** URL of an HTTP proxy on the way to the server. */
  readonly proxy?: string;
  /** The proof to send now. `refresh`: the server refused the last one, so take nothing from a cache. */
  access(refresh?: boolean): Promise<Access>;
}

/** Credentials that never change. */
export function staticCredentials(settings: Omit<Credentials, "access"> & Access): Credentials {
  const { token, tls, ...rest } = settings;
  const access: Access = { tls, ...(token !== undefined && { token }) };
  return { ...rest, access: async () => access };
}

/** A value that may be stale, or must be fresh. */
export type Source<T> = (refresh?: boolean) => Promise<T>;

// What kubelets rotate is good for minutes after its successor is there.
const fileMaxAgeMs = 60_000;

/** A file's text, read again every minute: tokens and certificates rotate on disk. */
export function fileText(path: string, clock: Clock = systemClock): Source<string> {
  let cached: { readonly text: string; readonly readAt: number } | undefined;
  return async (refresh = false) => {
    if (cached && !refresh && clock.monotonic() - cached.readAt < fileMaxAgeMs) return cached.text;
    try {
      cached = { text: await readFile(path, "utf8"), readAt: clock.monotonic() };
    } catch (error) {
      // Half-way through a rotation the file may be missing; the last text is the best there is.
      if (!cached || refresh) throw new Error(`cannot read ${path}`, { cause: error });
    }
    return cached.text;
  };
}
