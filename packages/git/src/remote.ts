/** Parses repository URLs before git gets them, so that git never takes one for an option or a command. */
import type { NetworkPolicy } from "./addresses.ts";

export type Remote =
  /** `url` has no credentials; those that it had are in `username` and `password`. */
  | { readonly kind: "http"; readonly url: URL; readonly username: string; readonly password: string }
  /** `url` is what git gets: `ssh://…`, or `user@host:path`, whose path is relative to the user's home. */
  | { readonly kind: "ssh"; readonly url: string; readonly host: string; readonly port: number };

type ParsedRemote = { readonly ok: true; readonly remote: Remote } | { readonly ok: false; readonly message: string };

const sshUser = /^[A-Za-z0-9_][A-Za-z0-9._-]*$/;
const sshHost = /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])$/;
const scpForm = /^(?:([^@/:[\]]+)@)?(\[[^\]]*\]|[^:/[\]@]+):(?!\/\/)(.+)$/;
// oxlint-disable-next-line no-control-regex -- it must match control characters
const unprintable = /[\u0000-\u0020\u007F-\u00A0\u2028\u2029]/;

const refused = (message: string): ParsedRemote => ({ ok: false, message });
const accepted = (remote: Remote): ParsedRemote => ({ ok: true, remote });

export function parseRemote(text: string, policy: NetworkPolicy): ParsedRemote {
  if (text.startsWith("-")) return refused("the repository's URL starts with a dash");
  if (unprintable.test(text)) return refused("the repository's URL contains a space or control character");
  // `ext::sh -c …` runs a command, and `<helper>::…` runs a program. An IPv6 address is in brackets.
  if (text.replaceAll(/\[[0-9A-Fa-f:.]+\]/g, "").includes("::")) {
    return refused("the repository's URL uses a transport helper (::); use https or ssh");
  }
  if (/^[A-Za-z][A-Za-z0-9+.-]*:\/\//.test(text)) return parseUrl(text, policy);
  const scp = scpForm.exec(text);
  if (scp) return parseScp(scp, text);
  return refused("the repository's URL is not supported; use https://…, ssh://… or user@host:path");
}

function parseUrl(text: string, policy: NetworkPolicy): ParsedRemote {
  // URL parsing would skip a third slash and take the first part of the path for the host.
  const url = /^[^/]+:\/\/[^/]/.test(text) ? URL.parse(text) : null;
  if (!url || url.hostname === "") return refused("the repository's URL is not a valid URL");
  if (url.search || url.hash) return refused("the repository's URL has a query or a fragment; remove it");
  if (url.protocol === "ssh:") return sshRemote(url);
  if (url.protocol === "http:" && !policy.allowHttp) {
    return refused(
      "the repository's URL starts with http://, which is not allowed, because plain http protects neither the program nor the credentials; " +
        "use https or ssh, or set the chart's value git.allowHttp (the operator's flag --allow-http) to true",
    );
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    return refused(`the repository's URL starts with ${url.protocol}//, which is not supported; use https or ssh`);
  }
  const { username, password } = url;
  url.username = "";
  url.password = "";
  return accepted({ kind: "http", url, username: decode(username), password: decode(password) });
}

function sshRemote(url: URL): ParsedRemote {
  if (url.password)
    return refused("the repository's ssh:// URL contains a password, which SSH does not use; set gitAuth.sshAuth");
  if (url.username && !sshUser.test(decode(url.username)))
    return refused("the user in the repository's URL is not a valid SSH user name");
  if (!sshHost.test(url.hostname)) return refused("the host in the repository's URL is not a valid host name");
  if (url.port === "0") return refused("the port in the repository's URL is not valid");
  const path = decode(url.pathname);
  if (path.length < 2 || path.startsWith("/-"))
    return refused("the path in the repository's URL is missing or starts with a dash");
  return accepted({ kind: "ssh", url: url.href, host: url.hostname, port: Number(url.port || 22) });
}

function parseScp(match: RegExpExecArray, url: string): ParsedRemote {
  const [, user, host = "", path = ""] = match;
  if (user !== undefined && !sshUser.test(user))
    return refused("the user in the repository's URL is not a valid SSH user name");
  if (!sshHost.test(host)) return refused("the host in the repository's URL is not a valid host name");
  if (path.startsWith("-")) return refused("the path in the repository's URL is missing or starts with a dash");
  return accepted({ kind: "ssh", url, host, port: 22 });
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
