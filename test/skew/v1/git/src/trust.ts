/**
 * The certificate authorities that this machine trusts, found as Go programs find them: users who mount a private
 * authority for such a program, and perhaps set SSL_CERT_FILE or SSL_CERT_DIR, need not learn another way.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

type Environment = Readonly<Record<string, string | undefined>>;

/** The first of them that exists is the system's bundle. */
const bundles = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];
const folders = ["/etc/ssl/certs", "/etc/pki/tls/certs"];
const certificateForm = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** In PEM; undefined when none is found, so that the runtime's own list is used. */
export async function trustedAuthorities(env: Environment): Promise<string | undefined> {
  const certificates = new Set(await found(env));
  return certificates.size === 0 ? undefined : `${[...certificates].join("\n")}\n`;
}

/** Whether someone has said where authorities are, in words that git does not understand. */
export function namesAuthorities(env: Environment): boolean {
  return !env["GIT_SSL_CAINFO"] && Boolean(env["SSL_CERT_FILE"] || env["SSL_CERT_DIR"]);
}

async function found(env: Environment): Promise<string[]> {
  const git = env["GIT_SSL_CAINFO"];
  // As git takes it: instead of all others.
  if (git) return await certificatesIn(git);
  const file = env["SSL_CERT_FILE"];
  return [
    ...(file ? await certificatesIn(file) : await firstWithAny(bundles)),
    ...(await inFolders(env["SSL_CERT_DIR"] ? env["SSL_CERT_DIR"].split(":") : folders)),
  ];
}

async function firstWithAny(files: readonly string[]): Promise<string[]> {
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
      // What Kubernetes keeps beside the files of a mounted volume.
      if (!name.startsWith("..")) certificates.push(...(await certificatesIn(join(folder, name))));
    }
  }
  return certificates;
}

/** A file that cannot be read is passed over, as the system's own tools do. */
async function certificatesIn(file: string): Promise<string[]> {
  const text = await readFile(file, "utf8").catch(() => "");
  return text.match(certificateForm) ?? [];
}
