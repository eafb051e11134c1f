/** The address of an API server and the credentials for it. kubeconfig.ts and in-cluster.ts create them. */
import { readFile } from "node:fs/promises";

import { systemClock, type Clock } from "../../clock.ts";
import type { TlsSettings } from "../requests/http.ts";

/** What authenticates one request. */
export interface Access {
  readonly token?: string;
  readonly tls: TlsSettings;
}

export interface Credentials {
  /** For example `https://10.96.0.1:443`. */
  readonly server: string;
  /** The default namespace of the credentials. */
  readonly namespace?: string;
  /** URL of an HTTP proxy in front of the server. */
  readonly proxy?: string;
  /** The credentials to send now. `refresh`: the server rejected the last ones, so bypass every cache. */
  access(refresh?: boolean): Promise<Access>;
}

/** Credentials that never change. */
export function staticCredentials(settings: Omit<Credentials, "access"> & Access): Credentials {
  const { token, tls, ...rest } = settings;
  const access: Access = { tls, ...(token !== undefined && { token }) };
  return { ...rest, access: async () => access };
}

/** Reads a value, which may come from a cache unless `refresh` is set. */
export type Source<T> = (refresh?: boolean) => Promise<T>;

// A token that the kubelet has rotated remains valid for minutes.
const fileMaxAgeMs = 60_000;

/** The text of a file, reread every minute: tokens and certificates rotate on disk. */
export function fileText(path: string, clock: Clock = systemClock): Source<string> {
  let cached: { readonly text: string; readonly readAt: number } | undefined;
  return async (refresh = false) => {
    if (cached && !refresh && clock.monotonic() - cached.readAt < fileMaxAgeMs) return cached.text;
    try {
      cached = { text: await readFile(path, "utf8"), readAt: clock.monotonic() };
    } catch (error) {
      // During a rotation the file may be missing; use the last known text.
      if (!cached || refresh) throw new Error(`cannot read ${path}`, { cause: error });
    }
    return cached.text;
  };
}
