/** The agent's certificate: files of a mounted Secret, which the kubelet replaces when the operator renews it. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Credentials } from "../../rpc/src/index.ts";

export async function readCredentials(folder: string): Promise<Credentials> {
  const [ca, cert, key] = await Promise.all(
    ["ca.crt", "tls.crt", "tls.key"].map((name) => readFile(join(folder, name), "utf8")),
  );
  if (!ca || !cert || !key) throw new Error(`${folder} does not hold ca.crt, tls.crt and tls.key`);
  return { ca, cert, key };
}

interface CredentialsWatch {
  readonly folder: string;
  readonly intervalMs: number;
  readonly onChange: (credentials: Credentials) => void;
  readonly onError: (error: unknown) => void;
}

/** Looks again and again: a mounted Secret is swapped by a link, which is easier to read than to be told of. */
export function watchCredentials(first: Credentials, watch: CredentialsWatch): () => void {
  let current = first;
  const look = async (): Promise<void> => {
    try {
      const next = await readCredentials(watch.folder);
      if (next.ca === current.ca && next.cert === current.cert && next.key === current.key) return;
      watch.onChange(next);
      current = next;
    } catch (error) {
      // Half replaced: the next look finds it whole.
      watch.onError(error);
    }
  };
  const timer = setInterval(() => void look(), watch.intervalMs);
  return () => clearInterval(timer);
}
