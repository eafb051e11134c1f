/** Certificates that are texts: real ones need other threads, whose results would arrive in any order. */
import type { Authorities, Certificate, CertificateState } from "@pko/rpc/pki";

import type { Pki } from "../../packages/operator/src/agents/operator-ca.ts";
import { workspaceServerName } from "@pko/rpc";

interface Facts {
  readonly issuer: string;
  readonly name: string;
  readonly notBefore: number;
  readonly notAfter: number;
}

const dayMs = 86_400_000;

export function simulatedPki(newUid: () => string): Pki {
  const issue = async (authorities: Authorities, name: string, now: Date): Promise<Certificate> => {
    const issuer = authorities.at(-1);
    if (!issuer) throw new Error("there is no certificate authority");
    const facts: Facts = {
      issuer: issuer.cert,
      name,
      notBefore: now.getTime() - 3_600_000,
      notAfter: now.getTime() + 30 * dayMs,
    };
    return { cert: JSON.stringify(facts), key: `key of ${newUid()}`, ca: bundle(authorities) };
  };
  return {
    createAuthorities: async () => [{ cert: `authority-${newUid()}`, key: `key of ${newUid()}` }],
    addAuthority: async (authorities) => [...authorities, { cert: `authority-${newUid()}`, key: `key of ${newUid()}` }],
    rotateAuthorities: async (authorities) => authorities,
    isRotationDue: () => false,
    issueOperatorCertificate: (authorities, now) => issue(authorities, "operator", now),
    issueWorkspaceCertificate: (authorities, workspace, now) => issue(authorities, workspaceServerName(workspace), now),
    certificateState: (certificate, authorities, now) => stateOf(certificate, authorities, now),
  };
}

function stateOf(
  certificate: Pick<Certificate, "ca" | "cert"> | undefined,
  authorities: Authorities,
  now: Date,
): CertificateState {
  if (!certificate) return "missing";
  const facts = factsOf(certificate.cert);
  if (!facts) return "unreadable";
  if (facts.notAfter - now.getTime() < 10 * dayMs) return "expiring";
  if (facts.notBefore > now.getTime()) return "notYetValid";
  if (facts.issuer !== authorities.at(-1)?.cert) return "issuerReplaced";
  return certificate.ca === bundle(authorities) ? "current" : "trustOutdated";
}

const bundle = (authorities: Authorities): string => authorities.map(({ cert }) => `${cert}\n`).join("");

function factsOf(cert: string): Facts | undefined {
  try {
    return JSON.parse(cert) as Facts;
  } catch {
    return undefined;
  }
}

/** Whether the holder of one certificate accepts the other. */
export function trusts(own: Pick<Certificate, "ca">, other: Pick<Certificate, "cert">, name: string): boolean {
  const facts = factsOf(other.cert);
  return facts !== undefined && facts.name === name && own.ca.split("\n").includes(facts.issuer);
}
