/** Addresses of repositories: checked before git sees them, so that none is taken for an option or a program. */
import type { NetworkPolicy } from "./addresses.ts";

export type Remote =
  /** The URL is without the credentials that it may have held. */
  | { readonly kind: "http"; readonly url: URL; readonly username: string; readonly password: string }
  /** `spelled` is what git gets: `ssh://…`, or `user@host:path`, whose path is relative to the user's home. */
  | { readonly kind: "ssh"; readonly spelled: string; readonly host: string; readonly port: number };

type ParsedRemote = { readonly ok: true; readonly remote: Remote } | { readonly ok: false; readonly message: string };

const sshUser = /^[A-Za-z0-9_][A-Za-z0-9._-]*$/;
const sshHost = /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])$/;
const scpForm = /^(?:([^@/:[\]]+)@)?(\[[^\]]*\]|[^:/[\]@]+):(?!\/\/)(.+)$/;
// oxlint-disable-next-line no-control-regex -- control characters are what this is about
const unprintable = /[\u0000-\u0020\u007F-\u00A0\u2028\u2029]/;

const refused = (message: string): ParsedRemote => ({ ok: false, message });
const accepted = (remote: Remote): ParsedRemote => ({ ok: true, remote });

export function parseRemote(spelled: string, policy: NetworkPolicy): ParsedRemote {
  if (spelled.startsWith("-")) return refused("the repository's URL begins with a dash");
  if (unprintable.test(spelled)) return refused("the repository's URL holds a space or control character");
  // `ext::sh -c …` runs a command, `<helper>::…` a program of that name. An IPv6 address stands in brackets.
  if (spelled.replaceAll(/\[[0-9A-Fa-f:.]+\]/g, "").includes("::")) {
    return refused("the repository's URL names a transport helper");
  }
  if (/^[A-Za-z][A-Za-z0-9+.-]*:\/\//.test(spelled)) return parseUrl(spelled, policy);
  const scp = scpForm.exec(spelled);
  if (scp) return parseScp(scp, spelled);
  return refused("the repository's URL is neither https://, ssh:// nor user@host:path");
}

function parseUrl(spelled: string, policy: NetworkPolicy): ParsedRemote {
  // A third slash would be skipped by URL parsing: what follows it would become the host.
  const url = /^[^/]+:\/\/[^/]/.test(spelled) ? URL.parse(spelled) : null;
  if (!url || url.hostname === "") return refused("the repository's URL is not a URL");
  if (url.search || url.hash) return refused("the repository's URL has a query or a fragment");
  if (url.protocol === "ssh:") return sshRemote(url);
  if (url.protocol === "http:" && !policy.allowHttp) {
    return refused(
      "the repository's URL begins with http://, and plain http is refused, because it protects neither the program nor the credentials; " +
        "use https or ssh, or set the chart's value git.allowHttp (the operator's flag --allow-http) to true",
    );
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    return refused(`the repository's URL is neither https nor ssh: ${url.protocol}//`);
  }
  const { username, password } = url;
  url.username = "";
  url.password = "";
  return accepted({ kind: "http", url, username: decode(username), password: decode(password) });
}

function sshRemote(url: URL): ParsedRemote {
  if (url.password) return refused("the repository's URL holds a password");
  if (url.username && !sshUser.test(decode(url.username))) return refused("the ssh user is not a name");
  if (!sshHost.test(url.hostname)) return refused("the ssh host is not a host");
  const path = decode(url.pathname);
  if (path.length < 2 || path.startsWith("/-")) return refused("the repository's path is not a path");
  return accepted({ kind: "ssh", spelled: url.href, host: url.hostname, port: Number(url.port || 22) });
}

function parseScp(match: RegExpExecArray, spelled: string): ParsedRemote {
  const [, user, host = "", path = ""] = match;
  if (user !== undefined && !sshUser.test(user)) return refused("the ssh user is not a name");
  if (!sshHost.test(host)) return refused("the ssh host is not a host");
  if (path.startsWith("-")) return refused("the repository's path is not a path");
  return accepted({ kind: "ssh", spelled, host, port: 22 });
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
