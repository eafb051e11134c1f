import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hasCaVariables, trustedCaCertificates } from "./trust.ts";

const folder = mkdtempSync(join(tmpdir(), "trust-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const certificate = (text: string): string => `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----`;
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

const one = file("one.pem", `# the first\n${certificate("one")}\n`);
const two = file("two.pem", `${certificate("two")}\n${certificate("one")}`);
const mounted = join(folder, "mounted");
mkdirSync(join(mounted, "..data"), { recursive: true });
writeFileSync(join(mounted, "..data", "three.crt"), certificate("three"));
symlinkSync("..data/three.crt", join(mounted, "three.crt"));

describe("trusted CAs", () => {
  test("git's own variable replaces all others", async () => {
    const env = { GIT_SSL_CAINFO: one, SSL_CERT_FILE: two, SSL_CERT_DIR: mounted };
    expect(await trustedCaCertificates(env)).toBe(`${certificate("one")}\n`);
    expect(hasCaVariables(env)).toBe(false);
  });

  test("come from a file and from folders, each once", async () => {
    const env = { SSL_CERT_FILE: two, SSL_CERT_DIR: `/nowhere:${mounted}:${mounted}` };
    expect(await trustedCaCertificates(env)).toBe(
      ["two", "one", "three"].map((name) => `${certificate(name)}\n`).join(""),
    );
    expect(hasCaVariables(env)).toBe(true);
  });

  test("a file is added to those in the system's folders", async () => {
    const system = (await trustedCaCertificates({})) ?? "";
    const both = (await trustedCaCertificates({ SSL_CERT_FILE: one })) ?? "";
    expect(both).toContain(certificate("one"));
    expect(both.length).toBeGreaterThanOrEqual(system.length);
  });

  test("undefined if there are none, so that the runtime uses its own list", async () => {
    expect(await trustedCaCertificates({ SSL_CERT_FILE: "/nowhere", SSL_CERT_DIR: "/nowhere" })).toBeUndefined();
    expect(hasCaVariables({})).toBe(false);
  });
});
