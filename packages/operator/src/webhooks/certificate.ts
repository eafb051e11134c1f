/** The endpoint's certificate: that of mounted files, which are read again when they change, or one that only encrypts. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";

import type { Logger } from "@pko/kube";

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** As in a Secret of type kubernetes.io/tls. */
export async function readCertificate(directory: string): Promise<Certificate> {
  const [cert, key] = await Promise.all(["tls.crt", "tls.key"].map((name) => readFile(join(directory, name), "utf8")));
  return { cert: cert ?? "", key: key ?? "" };
}

/** The certificate that is in the files now; undefined if it is the same, or cannot be read. */
export async function changedCertificate(
  directory: string,
  current: Certificate,
  log: Logger,
): Promise<Certificate | undefined> {
  try {
    const read = await readCertificate(directory);
    return read.cert === current.cert && read.key === current.key ? undefined : read;
  } catch (error) {
    log.warn("the certificate of the webhook endpoint cannot be read; the former one stays in use", {
      directory,
      error,
    });
    return undefined;
  }
}
