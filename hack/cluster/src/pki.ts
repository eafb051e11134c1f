/** CAs and the certificates that they sign, for clusters on this machine only. */
// @peculiar/x509 uses decorators, which need this polyfill to be loaded first.
import "reflect-metadata";

import * as x509 from "@peculiar/x509";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const lifetimeMs = 10 * 365 * 24 * 3600 * 1000;

export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

interface Subject {
  readonly commonName: string;
  readonly organization?: string;
  readonly dns?: readonly string[];
  readonly ips?: readonly string[];
  readonly lifetimeMs?: number;
}

export interface Authority extends KeyPair {
  issue(subject: Subject): Promise<KeyPair>;
}

export async function createCa(commonName: string): Promise<Authority> {
  const keys = await generateKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(),
    name: [{ CN: [commonName] }],
    ...validity(lifetimeMs),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 1, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.digitalSignature, true),
    ],
  });
  return authority({ cert: certificate.toString("pem"), key: await privatePem(keys.privateKey) });
}

/** A CA from its certificate and key. */
function authority(pair: KeyPair): Authority {
  return { ...pair, issue: (subject) => issue(pair, subject) };
}

async function issue(authority: KeyPair, subject: Subject): Promise<KeyPair> {
  const issuer = new x509.X509Certificate(authority.cert);
  const keys = await generateKeys();
  const names: x509.JsonGeneralNames = [
    ...(subject.dns ?? []).map((value) => ({ type: "dns" as const, value })),
    ...(subject.ips ?? []).map((value) => ({ type: "ip" as const, value })),
  ];
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial(),
    subject: [{ CN: [subject.commonName] }, ...(subject.organization ? [{ O: [subject.organization] }] : [])],
    issuer: issuer.subject,
    ...validity(subject.lifetimeMs ?? lifetimeMs),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey: await importKey(authority.key),
    extensions: [
      new x509.BasicConstraintsExtension(false),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]),
      ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
    ],
  });
  return { cert: certificate.toString("pem"), key: await privatePem(keys.privateKey) };
}

async function generateKeys(): Promise<CryptoKeyPair> {
  return await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
}

async function importKey(pem: string): Promise<CryptoKey> {
  const der = x509.PemConverter.decodeFirst(pem);
  return await crypto.subtle.importKey("pkcs8", der, algorithm, true, ["sign"]);
}

async function privatePem(key: CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await crypto.subtle.exportKey("pkcs8", key), "PRIVATE KEY");
}

/** Starts an hour early, so that a certificate is valid immediately on a machine whose clock is behind. */
function validity(ms: number): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(Date.now() - 3600_000), notAfter: new Date(Date.now() + ms) };
}

function serial(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(15)))
    .toString("hex")
    .replace(/^/, "01");
}
