/** The agent's certificate: files of a mounted Secret, which the kubelet updates when the operator renews it. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Credentials } from "@pko/rpc";

export async function readCredentials(folder: string): Promise<Credentials> {
  const [ca, cert, key] = await Promise.all(
    ["ca.crt", "tls.crt", "tls.key"].map((name) => readFile(join(folder, name), "utf8")),
  );
  if (!ca || !cert || !key) throw new Error(`${folder} does not contain ca.crt, tls.crt and tls.key`);
  return { ca, cert, key };
}

interface CredentialsWatch {
  readonly folder: string;
  readonly intervalMs: number;
  readonly onChange: (credentials: Credentials) => void;
  readonly onError: (error: unknown) => void;
}

/** Polls, because the kubelet updates a mounted Secret by replacing a symbolic link, which is hard to watch. */
export function watchCredentials(first: Credentials, watch: CredentialsWatch): () => void {
  let current = first;
  const poll = async (): Promise<void> => {
    try {
      const next = await readCredentials(watch.folder);
      if (next.ca === current.ca && next.cert === current.cert && next.key === current.key) return;
      watch.onChange(next);
      current = next;
    } catch (error) {
      // The update may be incomplete; the next poll reads it again.
      watch.onError(error);
    }
  };
  const timer = setInterval(() => void poll(), watch.intervalMs);
  return () => clearInterval(timer);
}
