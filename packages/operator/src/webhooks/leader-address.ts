/** Where the leading replica receives webhooks, in an annotation of the Lease: only the operator and administrators can write it. */
import { X509Certificate } from "node:crypto";

import { webhookLeaderAnnotation } from "@pko/api";

export interface LeaderAddress {
  readonly host: string;
  readonly port: number;
  /** SHA-256 of the certificate that the leader presents. */
  readonly fingerprint: string;
}

type Annotations = Readonly<Record<string, string>>;

export const fingerprintOf = (certificate: string): string => new X509Certificate(certificate).fingerprint256;

export const leaderAnnotations = (address: LeaderAddress): Annotations => ({
  [webhookLeaderAnnotation]: `${address.host} ${address.port} ${address.fingerprint}`,
});

/** Undefined if there is none that can be used. */
export function leaderAddressIn(annotations: Annotations): LeaderAddress | undefined {
  const [host = "", port = "", fingerprint = ""] = (annotations[webhookLeaderAnnotation] ?? "").split(" ");
  const isUsable =
    /^[0-9A-Fa-f.:]+$/.test(host) && /^\d{1,5}$/.test(port) && /^([0-9A-F]{2}:){31}[0-9A-F]{2}$/.test(fingerprint);
  return isUsable ? { host, port: Number(port), fingerprint } : undefined;
}
