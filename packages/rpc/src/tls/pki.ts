/**
 * The operator's certificate authorities (CAs) and the certificates that they sign. Only the operator loads this module;
 * the agent reads PEM files.
 *
 *   first        A signs, A is trusted
 *   A is old     A signs, A and B are trusted        until every pod trusts B
 *   propagated   B signs, A and B are trusted        until every certificate that A signed has expired
 *   retired      B signs, B is trusted
 *
 * Time is data: every function takes `now`, and a CA's age comes from its certificate.
 */
// @peculiar/x509 resolves its parts through decorators, which need this polyfill loaded first.
import "reflect-metadata";

import * as x509 from "@peculiar/x509";
import { operatorName, workspaceServerName, type WorkspaceRef } from "./identity.ts";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** Certificates are valid a little earlier, for machines whose clock is behind. */
const skewMs = hourMs;
const authorityLifetimeMs = 365 * dayMs;
const leafLifetimeMs = 30 * dayMs;
/** How long a new CA is only trusted before it signs. The kubelet updates a pod's Secret much faster. */
const propagationMs = 2 * hourMs;

interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** The CAs in the operator's Secret, oldest first. */
export type Authorities = readonly KeyPair[];

export interface Certificate extends KeyPair {
  /** The CAs that the holder trusts, in PEM. */
  readonly ca: string;
}

export async function createAuthorities(now: Date): Promise<Authorities> {
  return [await createCa(now)];
}

/** Whether `rotateAuthorities` would change anything. */
export function isRotationDue(authorities: Authorities, now: Date): boolean {
  const usable = usableAuthorities(authorities, now);
  return usable.length < authorities.length || needsSuccessor(usable, now);
}

/** Returns the CAs that should exist now; the same array when no rotation is due. */
export async function rotateAuthorities(authorities: Authorities, now: Date): Promise<Authorities> {
  if (!isRotationDue(authorities, now)) return authorities;
  const usable = usableAuthorities(authorities, now);
  return needsSuccessor(usable, now) ? [...usable, await createCa(now)] : usable;
}

/** Starts a rotation before it is due: the new CA takes over as in any other rotation. */
export async function addAuthority(authorities: Authorities, now: Date): Promise<Authorities> {
  return [...usableAuthorities(authorities, now), await createCa(now)];
}

/**
 * Merges two unrelated sets of CAs, because agents may trust either. Oldest first; of the same second, those of `some`
 * first.
 */
export function joinAuthorities(some: Authorities, others: Authorities): Authorities {
  const start = ({ cert }: KeyPair): number => parse(cert)?.notBefore.getTime() ?? 0;
  return [...some, ...others].toSorted((a, b) => start(a) - start(b));
}

function usableAuthorities(authorities: Authorities, now: Date): Authorities {
  return authorities.filter((authority, index) => !isRetired(authority, authorities.slice(index + 1), now));
}

function needsSuccessor(authorities: Authorities, now: Date): boolean {
  const newest = authorities.at(-1);
  return !newest || remaining(newest, now) < authorityLifetimeMs / 3;
}

export function trustBundle(authorities: Authorities): string {
  return authorities.map((authority) => authority.cert.trim() + "\n").join("");
}

export async function issueWorkspaceCertificate(
  authorities: Authorities,
  workspace: WorkspaceRef,
  now: Date,
): Promise<Certificate> {
  return await issue(authorities, { name: workspaceServerName(workspace), usage: "serverAuth" }, now);
}

export async function issueOperatorCertificate(authorities: Authorities, now: Date): Promise<Certificate> {
  return await issue(authorities, { name: operatorName, usage: "clientAuth" }, now);
}

/** Why a stored certificate must be replaced; "current" if it need not be. */
export type CertificateState =
  "current" | "missing" | "unreadable" | "expiring" | "notYetValid" | "issuerReplaced" | "trustOutdated";

export function certificateState(
  certificate: Pick<Certificate, "ca" | "cert"> | undefined,
  authorities: Authorities,
  now: Date,
): CertificateState {
  if (!certificate) return "missing";
  const leaf = parse(certificate.cert);
  if (!leaf) return "unreadable";
  if (leaf.notAfter.getTime() - now.getTime() < leafLifetimeMs / 3) return "expiring";
  if (leaf.notBefore.getTime() > now.getTime()) return "notYetValid";
  if (leaf.issuer !== parse(signer(authorities, now).cert)?.subject) return "issuerReplaced";
  return certificate.ca === trustBundle(authorities) ? "current" : "trustOutdated";
}

/** The newest CA that has had time to propagate. The first CA signs immediately. */
function signer(authorities: Authorities, now: Date): KeyPair {
  const propagated = authorities.findLast((authority) => age(authority, now) >= propagationMs) ?? authorities[0];
  if (!propagated) throw new Error("there is no certificate authority");
  return propagated;
}

/**
 * Whether no certificate that this CA signed can still be in use: it has expired, or a newer CA has been signing for
 * longer than a certificate is valid. A CA that is not valid yet was created while the clock was ahead; its
 * certificates are not accepted.
 */
function isRetired(authority: KeyPair, newer: readonly KeyPair[], now: Date): boolean {
  if (remaining(authority, now) <= 0 || age(authority, now) < -skewMs) return true;
  return newer.some((other) => age(other, now) > propagationMs + leafLifetimeMs + dayMs);
}

function age(authority: KeyPair, now: Date): number {
  const certificate = parse(authority.cert);
  return certificate ? now.getTime() - (certificate.notBefore.getTime() + skewMs) : Number.POSITIVE_INFINITY;
}

function remaining(authority: KeyPair, now: Date): number {
  return (parse(authority.cert)?.notAfter.getTime() ?? 0) - now.getTime();
}

type Facts = Pick<x509.X509Certificate, "notBefore" | "notAfter" | "issuer" | "subject">;

/** The same few certificates are assessed again and again, and parsing one takes milliseconds. */
const parsed = new Map<string, Facts | undefined>();
const maxParsed = 1000;

function parse(pem: string): Facts | undefined {
  if (parsed.has(pem)) return parsed.get(pem);
  if (parsed.size >= maxParsed) parsed.clear();
  const facts = parseNow(pem);
  parsed.set(pem, facts);
  return facts;
}

function parseNow(pem: string): Facts | undefined {
  try {
    const { notBefore, notAfter, issuer, subject } = new x509.X509Certificate(pem);
    return { notBefore, notAfter, issuer, subject };
  } catch {
    return undefined;
  }
}

async function createCa(now: Date): Promise<KeyPair> {
  const keys = await generateKeys();
  const serialNumber = serial();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber,
    // Names are unique, because during a rotation the issuer is looked up by name.
    name: [{ CN: [`pulumi-kubernetes-operator ${serialNumber.slice(-8)}`] }],
    notBefore: new Date(now.getTime() - skewMs),
    notAfter: new Date(now.getTime() + authorityLifetimeMs),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: certificate.toString("pem"), key: await privatePem(keys.privateKey) };
}

/**
 * For an endpoint whose clients do not know our CA, such as the metrics endpoint: it encrypts, but does not authenticate.
 * The certificate exists only in memory and outlives the process.
 */
export async function selfSignedCertificate(name: string, now: Date): Promise<KeyPair> {
  const keys = await generateKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(),
    name: [{ CN: [name] }],
    notBefore: new Date(now.getTime() - skewMs),
    notAfter: new Date(now.getTime() + 10 * authorityLifetimeMs),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(false),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([{ type: "dns", value: name }]),
    ],
  });
  return { cert: certificate.toString("pem"), key: await privatePem(keys.privateKey) };
}

interface Subject {
  readonly name: string;
  readonly usage: "serverAuth" | "clientAuth";
}

async function issue(authorities: Authorities, subject: Subject, now: Date): Promise<Certificate> {
  const authority = signer(authorities, now);
  const issuer = new x509.X509Certificate(authority.cert);
  const keys = await generateKeys();
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial(),
    // A common name has at most 64 characters; clients check the subject alternative name.
    subject: [{ CN: [subject.name.slice(0, 64)] }],
    issuer: issuer.subject,
    notBefore: new Date(now.getTime() - skewMs),
    notAfter: new Date(Math.min(now.getTime() + leafLifetimeMs, issuer.notAfter.getTime())),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey: await importKey(authority.key),
    extensions: [
      new x509.BasicConstraintsExtension(false),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      // One usage only: a workspace must not be able to call another workspace with its certificate.
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage[subject.usage]]),
      new x509.SubjectAlternativeNameExtension([{ type: "dns", value: subject.name }]),
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
    ],
  });
  return {
    cert: certificate.toString("pem"),
    key: await privatePem(keys.privateKey),
    ca: trustBundle(authorities),
  };
}

async function generateKeys(): Promise<CryptoKeyPair> {
  return await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
}

async function importKey(pem: string): Promise<CryptoKey> {
  return await crypto.subtle.importKey("pkcs8", x509.PemConverter.decodeFirst(pem), algorithm, false, ["sign"]);
}

async function privatePem(key: CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await crypto.subtle.exportKey("pkcs8", key), "PRIVATE KEY");
}

/** The leading 01 keeps the number positive. */
function serial(): string {
  return `01${Buffer.from(crypto.getRandomValues(new Uint8Array(15))).toString("hex")}`;
}
