/**
 * Which addresses a repository or an artifact may be fetched from. Loopback and link-local ones are the pod itself and
 * the cloud's metadata service: an address that leads there is refused, whatever name it hides behind.
 */
import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";

export interface NetworkPolicy {
  /** For tests: plain http besides https. */
  readonly allowHttp: boolean;
  /** Addresses that may be used although they are reserved. */
  readonly allowedAddresses: readonly string[];
}

type Resolved =
  | { readonly kind: "resolved"; readonly addresses: readonly string[] }
  | { readonly kind: "unknown"; readonly message: string }
  | { readonly kind: "forbidden"; readonly message: string };

const forbidden = new BlockList();
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
] as const) {
  forbidden.addSubnet(network, prefix, "ipv4");
}
for (const [network, prefix] of [
  ["::", 128],
  ["::1", 128],
  ["fe80::", 10],
  ["ff00::", 8],
  // The metadata service of EC2 over IPv6.
  ["fd00:ec2::254", 128],
] as const) {
  forbidden.addSubnet(network, prefix, "ipv6");
}

export function isForbidden(address: string): boolean {
  const plain = embeddedIpv4(address) ?? address;
  return forbidden.check(plain, isIP(plain) === 6 ? "ipv6" : "ipv4");
}

/** The IPv4 address inside an IPv4-mapped or NAT64 one, as URL parsing spells it: two groups of hex digits at the end. */
function embeddedIpv4(address: string): string | undefined {
  if (isIP(address) !== 6) return undefined;
  const spelled = new URL(`http://[${address.split("%")[0] ?? ""}]/`).hostname.slice(1, -1);
  const match = /^(?:::ffff|64:ff9b:):([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(spelled);
  if (!match) return undefined;
  const [high, low] = [Number.parseInt(match[1] ?? "0", 16), Number.parseInt(match[2] ?? "0", 16)];
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");
}

const proxies = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"];

/** Behind a proxy a name may be one that only the proxy can resolve. */
export function hasProxy(env: Readonly<Record<string, string | undefined>>): boolean {
  return proxies.some((name) => env[name]);
}

/** Whoever connects uses these addresses: a second look-up could answer otherwise. */
export async function resolveHost(host: string, policy: NetworkPolicy): Promise<Resolved> {
  const bare = host.replaceAll(/[[\]]/g, "");
  let addresses: string[];
  try {
    addresses = isIP(bare) ? [bare] : (await lookup(bare, { all: true })).map(({ address }) => address);
  } catch {
    return { kind: "unknown", message: `the host ${bare} cannot be resolved` };
  }
  if (addresses.some((address) => isForbidden(address) && !policy.allowedAddresses.includes(address))) {
    return { kind: "forbidden", message: `the host ${bare} is a loopback, link-local or otherwise reserved address` };
  }
  return { kind: "resolved", addresses };
}
