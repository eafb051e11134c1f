/**
 * The CAs that this container trusts, found in the same way as Go programs find them: users mount a private CA, and may
 * set SSL_CERT_FILE or SSL_CERT_DIR, as they do for other programs.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

import type { Environment } from "./addresses.ts";

/** The first file with certificates is the system's bundle. */
const bundles = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];
const folders = ["/etc/ssl/certs", "/etc/pki/tls/certs"];
const certificateForm = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** In PEM; undefined if there are none, so that the runtime's own list is used. */
export async function trustedCaCertificates(env: Environment): Promise<string | undefined> {
  const certificates = new Set(await findCertificates(env));
  return certificates.size === 0 ? undefined : `${[...certificates].join("\n")}\n`;
}

/** Whether the environment names CAs in variables that git does not read. */
export function hasCaVariables(env: Environment): boolean {
  return !env["GIT_SSL_CAINFO"] && Boolean(env["SSL_CERT_FILE"] || env["SSL_CERT_DIR"]);
}

async function findCertificates(env: Environment): Promise<string[]> {
  const git = env["GIT_SSL_CAINFO"];
  // As in git, this variable replaces all others.
  if (git) return await certificatesIn(git);
  const file = env["SSL_CERT_FILE"];
  return [
    ...(file ? await certificatesIn(file) : await firstBundle(bundles)),
    ...(await inFolders(env["SSL_CERT_DIR"] ? env["SSL_CERT_DIR"].split(":") : folders)),
  ];
}

async function firstBundle(files: readonly string[]): Promise<string[]> {
  for (const file of files) {
    const certificates = await certificatesIn(file);
    if (certificates.length > 0) return certificates;
  }
  return [];
}

async function inFolders(names: readonly string[]): Promise<string[]> {
  const certificates: string[] = [];
  for (const folder of names) {
    for (const name of await readdir(folder).catch(() => [])) {
      // Kubernetes keeps its own files, such as ..data, beside those of a mounted volume.
      if (!name.startsWith("..")) certificates.push(...(await certificatesIn(join(folder, name))));
    }
  }
  return certificates;
}

/** Ignores an unreadable file, as the system's own tools do. */
async function certificatesIn(file: string): Promise<string[]> {
  const text = await readFile(file, "utf8").catch(() => "");
  return text.match(certificateForm) ?? [];
}
