import { describe, expect, test } from "bun:test";
import * as x509 from "@peculiar/x509";
import { operatorName, workspaceServerName } from "./identity.ts";
import {
  createAuthorities,
  issueOperatorCertificate,
  issueWorkspaceCertificate,
  needsReissue,
  rotateAuthorities,
  trustBundle,
} from "./pki.ts";
import { splitBundle } from "./tls.ts";

const start = new Date("2026-01-01T00:00:00Z");
const later = (days: number, hours = 0): Date => new Date(start.getTime() + (days * 24 + hours) * 3_600_000);
const web = { namespace: "prod", name: "web" };

describe("certificates", () => {
  test("a workspace's certificate carries its name and may only serve", async () => {
    const authorities = await createAuthorities(start);
    const leaf = new x509.X509Certificate((await issueWorkspaceCertificate(authorities, web, start)).cert);
    expect(leaf.getExtension(x509.SubjectAlternativeNameExtension)?.names.toJSON()).toEqual([
      { type: "dns", value: "web.prod.workspace.auto.pulumi.com" },
    ]);
    expect(leaf.getExtension(x509.ExtendedKeyUsageExtension)?.usages).toEqual([x509.ExtendedKeyUsage.serverAuth]);
    expect(leaf.getExtension(x509.BasicConstraintsExtension)?.ca).toBe(false);
  });

  test("the operator's certificate may only call", async () => {
    const authorities = await createAuthorities(start);
    const leaf = new x509.X509Certificate((await issueOperatorCertificate(authorities, start)).cert);
    expect(leaf.getExtension(x509.ExtendedKeyUsageExtension)?.usages).toEqual([x509.ExtendedKeyUsage.clientAuth]);
    expect(leaf.getExtension(x509.SubjectAlternativeNameExtension)?.names.toJSON()).toEqual([
      { type: "dns", value: operatorName },
    ]);
  });

  test("a certificate never outlives its authority", async () => {
    const authorities = await createAuthorities(start);
    const late = later(360);
    const leaf = new x509.X509Certificate((await issueWorkspaceCertificate(authorities, web, late)).cert);
    const authority = new x509.X509Certificate(authorities[0]?.cert ?? "");
    expect(leaf.notAfter.getTime()).toBeLessThanOrEqual(authority.notAfter.getTime());
  });

  test("names of workspaces do not meet across namespaces", () => {
    expect(workspaceServerName({ namespace: "c", name: "a.b" })).not.toBe(
      workspaceServerName({ namespace: "b", name: "a" }),
    );
    const long = workspaceServerName({ namespace: "n".repeat(63), name: "w".repeat(253) });
    expect(long.length).toBeLessThanOrEqual(253);
    expect(long.split(".").every((label) => label.length <= 63)).toBe(true);
    expect(long).not.toBe(workspaceServerName({ namespace: "n".repeat(63), name: `${"w".repeat(252)}x` }));
  });
});

describe("rotation", () => {
  test("nothing is due while the authority is young", async () => {
    const authorities = await createAuthorities(start);
    expect(await rotateAuthorities(authorities, later(200))).toBe(authorities);
  });

  test("a new authority is trusted first, signs once it is known, and replaces the old one at last", async () => {
    const first = await createAuthorities(start);
    const before = await issueWorkspaceCertificate(first, web, later(240));

    const overlapping = await rotateAuthorities(first, later(250));
    expect(overlapping).toHaveLength(2);
    const heardOf = await issueWorkspaceCertificate(overlapping, web, later(250, 1));
    expect(issuerOf(heardOf.cert)).toBe(subjectOf(first[0]?.cert));
    expect(splitBundle(heardOf.ca)).toHaveLength(2);

    const after = await issueWorkspaceCertificate(overlapping, web, later(250, 3));
    expect(issuerOf(after.cert)).toBe(subjectOf(overlapping[1]?.cert));
    expect(needsReissue(before, overlapping, later(250, 3))).toBe(true);
    expect(needsReissue(after, overlapping, later(250, 4))).toBe(false);

    expect(await rotateAuthorities(overlapping, later(270))).toBe(overlapping);
    const single = await rotateAuthorities(overlapping, later(290));
    expect(single).toEqual(overlapping.slice(1));
    expect(needsReissue(after, single, later(290))).toBe(true);
  });

  test("an expired authority is replaced at once", async () => {
    const first = await createAuthorities(start);
    const next = await rotateAuthorities(first, later(400));
    expect(next).toHaveLength(1);
    expect(trustBundle(next)).not.toBe(trustBundle(first));
  });

  test("a certificate is replaced when a third of its life is left, and when it cannot be read", async () => {
    const authorities = await createAuthorities(start);
    const certificate = await issueWorkspaceCertificate(authorities, web, later(10));
    expect(needsReissue(certificate, authorities, later(29))).toBe(false);
    expect(needsReissue(certificate, authorities, later(31))).toBe(true);
    expect(needsReissue({ ...certificate, cert: "not a certificate" }, authorities, later(10))).toBe(true);
  });
});

function issuerOf(pem: string): string {
  return new x509.X509Certificate(pem).issuer;
}

function subjectOf(pem: string | undefined): string {
  return new x509.X509Certificate(pem ?? "").subject;
}
