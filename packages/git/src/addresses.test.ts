import { describe, expect, test } from "bun:test";
import { limitedLookup, isForbidden, resolveHost } from "./addresses.ts";

describe("forbidden: addresses of the pod itself and of the cloud's metadata", () => {
  for (const address of [
    "127.0.0.1",
    "127.255.0.3",
    "0.0.0.0",
    "169.254.169.254",
    "169.254.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "ff02::1",
    "fd00:ec2::254",
    "::ffff:127.0.0.1",
    "::ffff:a9fe:a9fe",
    "64:ff9b::169.254.169.254",
    // Alibaba Cloud, Azure's wire server, Oracle Cloud Classic
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    // EKS Pod Identity, Google Cloud, Scaleway, Linode
    "fd00:ec2::23",
    "fd20:ce::254",
    "fd00:42::42",
    "fd00:a9fe:a9fe::1",
    // Valid, but URL parsing does not know this notation.
    "4:b::f:0:9.5.9.5",
    // IPv4 addresses in IPv6 ones: mapped, translated, compatible, NAT64 with a local prefix, 6to4
    "::ffff:100.100.100.200",
    "::ffff:0:169.254.169.254",
    "::169.254.169.254",
    "64:ff9b:1::169.254.169.254",
    "2002:a9fe:a9fe::1",
  ]) {
    test(address, () => expect(isForbidden(address)).toBe(true));
  }
});

describe("allowed: addresses of clusters and of the internet", () => {
  for (const address of [
    "10.0.0.1",
    "192.168.1.1",
    "172.16.0.1",
    "100.64.0.1",
    "8.8.8.8",
    "fd00::1",
    "2001:db8::1",
    "100.100.100.201",
    "192.0.2.1",
    "::ffff:10.0.0.1",
    "64:ff9b::8.8.8.8",
    "64:ff9b:1::10.0.0.1",
    "2002:808:808::1",
  ]) {
    test(address, () => expect(isForbidden(address)).toBe(false));
  }
});

describe("names", () => {
  const strict = { allowHttp: false, allowedAddresses: [] };

  test("a name that resolves to loopback is forbidden", async () => {
    expect(await resolveHost("localhost", strict)).toMatchObject({ kind: "forbidden" });
  });

  test("a name that does not resolve is unknown for now", async () => {
    expect(await resolveHost("nowhere.invalid", strict)).toMatchObject({ kind: "unknown" });
  });

  test("a name whose DNS server does not respond in time is unknown for now", async () => {
    const silent = limitedLookup(() => Promise.withResolvers<string[]>().promise, 1);
    expect(await resolveHost("silent.example", strict, silent)).toMatchObject({ kind: "unknown" });
    expect(await limitedLookup(async () => ["192.0.2.1"], 60_000)("a.example")).toEqual(["192.0.2.1"]);
  });

  test("the policy may allow single reserved addresses", async () => {
    const policy = { ...strict, allowedAddresses: ["127.0.0.1"] };
    expect(await resolveHost("127.0.0.1", policy)).toEqual({ kind: "resolved", addresses: ["127.0.0.1"] });
    expect(await resolveHost("127.0.0.2", policy)).toMatchObject({ kind: "forbidden" });
  });
});
