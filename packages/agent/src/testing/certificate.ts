/** For tests: the files that a Secret with the certificate of an agent has in its pod. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Credentials } from "@pko/rpc";

export function writeCertificate(folder: string, { ca, cert, key }: Credentials): void {
  const files = { "ca.crt": ca, "tls.crt": cert, "tls.key": key };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
}
