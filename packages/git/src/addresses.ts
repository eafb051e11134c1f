/**
 * Which addresses a repository or an artifact may be fetched from. Loopback and link-local addresses are the pod itself
 * and the cloud's metadata service: they are forbidden, whatever name resolves to them.
 *
 * Some clouds serve metadata at other addresses. These are forbidden one by one, because clusters may use the rest of
 * their networks.
 */
import { BlockList, isIP } from "node:net";

export interface NetworkPolicy {
  /** Allows plain http: the chart's value git.allowHttp. */
  readonly allowHttp: boolean;
  /** Exceptions from the forbidden addresses. */
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
  // Metadata of Alibaba Cloud and of Oracle Cloud Classic (with the rest of a reserved block); Azure's wire server.
  ["100.100.100.200", 32],
  ["192.0.0.0", 24],
  ["168.63.129.16", 32],
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
  // Metadata over IPv6: EC2 and EKS Pod Identity, Google Cloud, Scaleway, Linode.
  ["fd00:ec2::", 32],
  ["fd20:ce::254", 128],
  ["fd00:42::42", 128],
  ["fd00:a9fe:a9fe::1", 128],
] as const) {
  forbidden.addSubnet(network, prefix, "ipv6");
}

export function isForbidden(address: string): boolean {
  if (isIP(address) !== 6) return forbidden.check(address, "ipv4");
  const groups = ipv6Groups(address);
  return (
    !groups ||
    forbidden.check(formatIpv6(groups), "ipv6") ||
    embeddedIpv4(groups).some((each) => forbidden.check(each, "ipv4"))
  );
}

/** The groups as numbers. URL parsing normalizes the notations to hex digits with at most one `::`; undefined for one that it does not know. */
function ipv6Groups(address: string): number[] | undefined {
  const normalized = URL.parse(`http://[${address.split("%")[0] ?? ""}]/`)?.hostname.slice(1, -1);
  if (normalized === undefined) return undefined;
  const [head = [], tail = []] = normalized.split("::").map((part) => part.split(":").filter(Boolean));
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => "0");
  return [...head, ...zeros, ...tail].map((group) => Number.parseInt(group, 16));
}

const formatIpv6 = (groups: readonly number[]): string => groups.map((group) => group.toString(16)).join(":");

const formatIpv4 = (high = 0, low = 0): string => [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");

/** `::`, `::ffff:` and `::ffff:0:` before an IPv4 address, and NAT64's well-known and local prefixes. */
const ipv4Prefixes = [/^(0:){6}/, /^(0:){5}ffff:/, /^(0:){4}ffff:0:/, /^64:ff9b:(0:){4}/, /^64:ff9b:1:/];

/** The IPv4 addresses to which the network may translate an IPv6 address. */
function embeddedIpv4(groups: readonly number[]): string[] {
  const address = formatIpv6(groups);
  const found: string[] = [];
  if (ipv4Prefixes.some((prefix) => prefix.test(address))) found.push(formatIpv4(groups[6], groups[7]));
  // 6to4
  if (groups[0] === 0x2002) found.push(formatIpv4(groups[1], groups[2]));
  return found;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const proxyVariables = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"];

export function hasProxy(env: Environment): boolean {
  return proxyVariables.some((name) => env[name]);
}

/** Returns all addresses of a host; rejects if there are none. */
export type Lookup = (host: string) => Promise<readonly string[]>;

/**
 * As long as the C library waits for a server by default. c-ares would wait for almost a minute: longer than the requests that need
 * the addresses may take, and those through a proxy do not need them.
 */
const lookupMs = 10_000;

/** A lookup that rejects after `ms`. */
export function limitedLookup(lookup: Lookup, ms: number): Lookup {
  return async (host) => {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(new Error(`no DNS response within ${ms / 1000} s`)), ms);
    try {
      return await Promise.race([lookup(host), late]);
    } finally {
      clearTimeout(timer);
    }
  };
}

/**
 * Not by the C library, whose lookups share a few threads: hosts whose DNS server does not respond would delay all others. Unlike it,
 * c-ares gives up when the server of a search domain fails, so that names with a dot are then tried as they are.
 */
export const systemLookup: Lookup = limitedLookup(async (host) => {
  try {
    return await lookUp(host);
  } catch (error) {
    if (!host.includes(".") || host.endsWith(".") || isNotFound(error)) throw error;
    return await lookUp(`${host}.`);
  }
}, lookupMs);

const lookUp = async (host: string): Promise<string[]> =>
  (await Bun.dns.lookup(host, { backend: "c-ares" })).map(({ address }) => address);

const isNotFound = (error: unknown): boolean =>
  error instanceof Error && "code" in error && ["DNS_ENOTFOUND", "DNS_ENODATA"].includes(String(error.code));

/** Callers must connect to these addresses: a second lookup could return others. */
export async function resolveHost(host: string, policy: NetworkPolicy, lookup = systemLookup): Promise<Resolved> {
  const bare = host.replaceAll(/[[\]]/g, "");
  let addresses: readonly string[];
  try {
    addresses = isIP(bare) ? [bare] : await lookup(bare);
  } catch {
    return { kind: "unknown", message: `the host ${bare} cannot be resolved; check the URL and the cluster's DNS` };
  }
  if (addresses.some((address) => isForbidden(address) && !policy.allowedAddresses.includes(address))) {
    return {
      kind: "forbidden",
      message: `the host ${bare} resolves to a loopback, link-local or otherwise reserved address, which is not allowed; use the server's real address`,
    };
  }
  return { kind: "resolved", addresses };
}
