import { describe, expect, test } from "bun:test";
import { isProvider, providerInExport, providerOfKeys } from "./secrets-provider.ts";

const exportOf = (providers: string): string => `{
    "version": 3,
    "deployment": {
        "manifest": {"time": "2026-01-01T00:00:00Z", "magic": "x", "version": "v3.259.0"},
        ${providers}
        "resources": [{"urn": "urn:pulumi:dev::demo::pulumi:pulumi:Stack::demo-dev"}]`;

describe("the provider of a stack's secrets", () => {
  test("is read from the start of the state", () => {
    const state = '"state": {"salt": "v1:abc=:v1:def"}';
    expect(providerInExport(exportOf(`"secrets_providers": {"type": "passphrase", ${state}},`))).toBe("passphrase");
    const cloud = String.raw`"state": {"url": "awskms://alias/a?region=b\u0026context_c=d", "encryptedkey": "e"}`;
    expect(providerInExport(exportOf(`"secrets_providers": {"type": "cloud", ${cloud}},`))).toBe(
      "awskms://alias/a?region=b&context_c=d",
    );
    const service = '"state": {"url": "https://api.pulumi.com", "owner": "acme"}';
    expect(providerInExport(exportOf(`"secrets_providers": {"type": "service", ${service}},`))).toBe("default");
    expect(providerInExport(exportOf(""))).toBeUndefined();
  });

  test("is read from the keys in the stack's settings", () => {
    expect(providerOfKeys({ encryptionsalt: "v1:abc" })).toBe("passphrase");
    expect(providerOfKeys({ secretsprovider: "gcpkms://key", encryptedkey: "e" })).toBe("gcpkms://key");
    expect(providerOfKeys({})).toBeUndefined();
  });

  test("a passphrase is also the `default` of a DIY backend", () => {
    expect(isProvider("passphrase", "default")).toBe(true);
    expect(isProvider("default", "passphrase")).toBe(false);
    expect(isProvider("awskms://a", "awskms://b")).toBe(false);
  });
});
