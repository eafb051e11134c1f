import { describe, expect, test } from "bun:test";
import * as x509 from "@peculiar/x509";
import { operatorName, workspaceServerName } from "./identity.ts";
import {
  addAuthority,
  certificateState,
  createAuthorities,
  isRotationDue,
  issueOperatorCertificate,
  issueWorkspaceCertificate,
  joinAuthorities,
  rotateAuthorities,
  trustBundle,
} from "./pki.ts";
import { splitBundle } from "./tls.ts";

const start = new Date("2026-01-01T00:00:00Z");
const later = (days: number, hours = 0): Date => new Date(start.getTime() + (days * 24 + hours) * 3_600_000);
const web = { namespace: "prod", name: "web" };

describe("certificates", () => {
  test("a workspace's certificate has its name and is only for servers", async () => {
    const authorities = await createAuthorities(start);
    const leaf = new x509.X509Certificate((await issueWorkspaceCertificate(authorities, web, start)).cert);
    expect(leaf.getExtension(x509.SubjectAlternativeNameExtension)?.names.toJSON()).toEqual([
      { type: "dns", value: "web.prod.workspace.auto.pulumi.com" },
    ]);
    expect(leaf.getExtension(x509.ExtendedKeyUsageExtension)?.usages).toEqual([x509.ExtendedKeyUsage.serverAuth]);
    expect(leaf.getExtension(x509.BasicConstraintsExtension)?.ca).toBe(false);
  });

  test("the operator's certificate is only for clients", async () => {
    const authorities = await createAuthorities(start);
    const leaf = new x509.X509Certificate((await issueOperatorCertificate(authorities, start)).cert);
    expect(leaf.getExtension(x509.ExtendedKeyUsageExtension)?.usages).toEqual([x509.ExtendedKeyUsage.clientAuth]);
    expect(leaf.getExtension(x509.SubjectAlternativeNameExtension)?.names.toJSON()).toEqual([
      { type: "dns", value: operatorName },
    ]);
  });

  test("a certificate never outlives its CA", async () => {
    const authorities = await createAuthorities(start);
    const late = later(360);
    const leaf = new x509.X509Certificate((await issueWorkspaceCertificate(authorities, web, late)).cert);
    const authority = new x509.X509Certificate(authorities[0]?.cert ?? "");
    expect(leaf.notAfter.getTime()).toBeLessThanOrEqual(authority.notAfter.getTime());
  });

  test("no two workspaces share a name, even across namespaces", () => {
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
  test("no rotation is due while the CA is young", async () => {
    const authorities = await createAuthorities(start);
    expect(await rotateAuthorities(authorities, later(200))).toBe(authorities);
  });

  test("a new CA is trusted first, signs after it has propagated, and finally replaces the old CA", async () => {
    const first = await createAuthorities(start);
    const before = await issueWorkspaceCertificate(first, web, later(240));

    const overlapping = await rotateAuthorities(first, later(250));
    expect(overlapping).toHaveLength(2);
    const propagating = await issueWorkspaceCertificate(overlapping, web, later(250, 1));
    expect(issuerOf(propagating.cert)).toBe(subjectOf(first[0]?.cert));
    expect(splitBundle(propagating.ca)).toHaveLength(2);

    const after = await issueWorkspaceCertificate(overlapping, web, later(250, 3));
    expect(issuerOf(after.cert)).toBe(subjectOf(overlapping[1]?.cert));
    expect(certificateState(before, overlapping, later(250, 3))).toBe("issuerReplaced");
    expect(certificateState(after, overlapping, later(250, 4))).toBe("current");

    expect(await rotateAuthorities(overlapping, later(270))).toBe(overlapping);
    const single = await rotateAuthorities(overlapping, later(290));
    expect(single).toEqual(overlapping.slice(1));
    expect(certificateState({ ...after, ca: trustBundle(overlapping) }, single, later(260))).toBe("trustOutdated");
  });

  test("an expired CA is replaced immediately", async () => {
    const first = await createAuthorities(start);
    const next = await rotateAuthorities(first, later(400));
    expect(next).toHaveLength(1);
    expect(trustBundle(next)).not.toBe(trustBundle(first));
  });

  test("a requested rotation takes the same steps although none is due", async () => {
    const first = await createAuthorities(start);
    expect(isRotationDue(first, later(10))).toBe(false);
    const both = await addAuthority(first, later(10));
    expect(both[0]).toBe(first[0]);
    const certificate = await issueWorkspaceCertificate(both, web, later(10, 1));
    expect(issuerOf(certificate.cert)).toBe(subjectOf(first[0]?.cert));
    expect(certificateState(certificate, both, later(10, 3))).toBe("issuerReplaced");
  });

  test("a CA that was created while the clock was ahead is replaced once the clock is right", async () => {
    const ahead = await createAuthorities(later(365));
    expect(isRotationDue(ahead, start)).toBe(true);
    const right = await rotateAuthorities(ahead, start);
    expect(right).toHaveLength(1);
    expect(isRotationDue(right, start)).toBe(false);
  });

  test("a clock that is slightly behind replaces nothing", async () => {
    const authorities = await createAuthorities(start);
    expect(isRotationDue(authorities, later(0, -0.9))).toBe(false);
  });

  test("two unrelated CAs are merged oldest first, and the older one signs until the other has propagated", async () => {
    const older = await createAuthorities(start);
    const newer = await createAuthorities(later(1));
    expect(joinAuthorities(newer, older)).toEqual([...older, ...newer]);
    const joined = joinAuthorities(newer, older);
    const certificate = await issueWorkspaceCertificate(joined, web, later(1, 1));
    expect(issuerOf(certificate.cert)).toBe(subjectOf(older[0]?.cert));
  });
});

describe("a stored certificate", () => {
  test("is replaced if it expires soon, is not valid yet, is missing or is unreadable", async () => {
    const authorities = await createAuthorities(start);
    const certificate = await issueWorkspaceCertificate(authorities, web, later(10));
    const table = [
      [certificate, later(29), "current"],
      [certificate, later(31), "expiring"],
      [certificate, later(9), "notYetValid"],
      [undefined, later(10), "missing"],
      [{ ...certificate, cert: "not a certificate" }, later(10), "unreadable"],
      [{ ...certificate, ca: "" }, later(10), "trustOutdated"],
    ] as const;
    for (const [stored, now, state] of table) expect(certificateState(stored, authorities, now)).toBe(state);
  });

  test("from another CA is replaced", async () => {
    const authorities = await createAuthorities(start);
    const foreign = await issueWorkspaceCertificate(await createAuthorities(start), web, start);
    expect(certificateState(foreign, authorities, start)).toBe("issuerReplaced");
  });
});

function issuerOf(pem: string): string {
  return new x509.X509Certificate(pem).issuer;
}

function subjectOf(pem: string | undefined): string {
  return new x509.X509Certificate(pem ?? "").subject;
}
