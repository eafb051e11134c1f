/** Which proxy to use for a URL, according to the variables that curl and git read. */
import { BlockList, isIP } from "node:net";

import type { Environment } from "./addresses.ts";

/** Undefined for a direct connection. */
export function proxyFor(url: URL, env: Environment): string | undefined {
  const scheme = url.protocol.slice(0, -1);
  // As in curl, HTTP_PROXY is ignored, because the client of a CGI program can set it with a header.
  const proxy =
    env[`${scheme}_proxy`] || (scheme === "https" && env["HTTPS_PROXY"]) || env["all_proxy"] || env["ALL_PROXY"];
  return proxy && !isExcepted(url, env["no_proxy"] || env["NO_PROXY"] || "") ? withScheme(proxy) : undefined;
}

const withScheme = (proxy: string): string => (proxy.includes("://") ? proxy : `http://${proxy}`);

function isExcepted(url: URL, exceptions: string): boolean {
  const host = url.hostname.replaceAll(/[[\]]/g, "").replace(/\.$/, "");
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  const entries = exceptions.split(/[\s,]+/).filter(Boolean);
  return entries.some((entry) => entry === "*" || matches(entry.toLowerCase(), host, port));
}

/** A name matches itself and its subdomains, with or without a leading dot; an address may have a prefix length. */
function matches(entry: string, host: string, port: string): boolean {
  if (entry.includes("/") || isIP(entry) !== 0) return isWithin(host, entry);
  const [, name = "", only = port] = /^\[?([^\]]*?)\]?(?::(\d+))?$/.exec(entry) ?? [];
  const bare = name.replace(/^\*?\./, "").replace(/\.$/, "");
  return only === port && (host === bare || host.endsWith(`.${bare}`));
}

function isWithin(host: string, entry: string): boolean {
  const [network = "", length] = entry.split("/");
  const family = isIP(network);
  if (family === 0 || isIP(host) !== family) return false;
  const prefix = length === undefined ? (family === 6 ? 128 : 32) : Number(length);
  const type = family === 6 ? "ipv6" : "ipv4";
  try {
    const list = new BlockList();
    list.addSubnet(network, prefix, type);
    return list.check(host, type);
  } catch {
    return false;
  }
}
