/** Addresses of repositories, commits and refs: checked before git sees them, so that none is taken for an option. */
import type { NetworkPolicy } from "@pko/git";
import { checkScheme } from "../net/http.ts";
import { done, failed, type Outcome } from "../outcome.ts";

export type Remote =
  | { readonly kind: "http"; readonly url: URL; readonly username: string; readonly password: string }
  /** `spelled` is what git gets: `ssh://…`, or `user@host:path`, whose path is relative to the user's home. */
  | { readonly kind: "ssh"; readonly spelled: string; readonly host: string; readonly port: number };

const sshUser = /^[A-Za-z0-9_][A-Za-z0-9._-]*$/;
const sshHost = /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])$/;
const scpForm = /^(?:([^@/:[\]]+)@)?(\[[^\]]*\]|[^:/[\]@]+):(?!\/\/)(.+)$/;
// oxlint-disable-next-line no-control-regex -- control characters are what this is about
const unprintable = /[\u0000-\u0020\u007F-\u00A0\u2028\u2029]/;

export function parseRemote(spelled: string, policy: NetworkPolicy): Outcome<Remote> {
  if (spelled.startsWith("-")) return failed("sourceInvalid", "the repository's URL begins with a dash");
  if (unprintable.test(spelled))
    return failed("sourceInvalid", "the repository's URL holds a space or control character");
  if (spelled.includes("::")) {
    // `ext::sh -c …` runs a command, `<helper>::…` a program of that name. An IPv6 address stands in brackets.
    const bracketed = spelled.replaceAll(/\[[0-9A-Fa-f:.]+\]/g, "");
    if (bracketed.includes("::")) return failed("sourceInvalid", "the repository's URL names a transport helper");
  }
  if (/^[A-Za-z][A-Za-z0-9+.-]*:\/\//.test(spelled)) return parseUrl(spelled, policy);
  const scp = scpForm.exec(spelled);
  if (scp) return parseScp(scp, spelled);
  return failed("sourceInvalid", "the repository's URL is neither https://, ssh:// nor user@host:path");
}

function parseUrl(spelled: string, policy: NetworkPolicy): Outcome<Remote> {
  // A third slash would be skipped by URL parsing: what follows it would become the host.
  const url = /^[^/]+:\/\/[^/]/.test(spelled) ? URL.parse(spelled) : null;
  if (!url || url.hostname === "") return failed("sourceInvalid", "the repository's URL is not a URL");
  if (url.search || url.hash) return failed("sourceInvalid", "the repository's URL has a query or a fragment");
  if (url.protocol === "ssh:") return sshRemote(url);
  const scheme = checkScheme(url, policy);
  if (!scheme.ok) return failed("sourceInvalid", `the repository's URL is neither https nor ssh: ${url.protocol}//`);
  const { username, password } = url;
  url.username = "";
  url.password = "";
  return done({ kind: "http", url, username: decode(username), password: decode(password) });
}

function sshRemote(url: URL): Outcome<Remote> {
  if (url.password) return failed("sourceInvalid", "the repository's URL holds a password");
  if (url.username && !sshUser.test(decode(url.username))) return failed("sourceInvalid", "the ssh user is not a name");
  if (!sshHost.test(url.hostname)) return failed("sourceInvalid", "the ssh host is not a host");
  const path = decode(url.pathname);
  if (path.length < 2 || path.startsWith("/-")) return failed("sourceInvalid", "the repository's path is not a path");
  return done({ kind: "ssh", spelled: url.href, host: url.hostname, port: Number(url.port || 22) });
}

function parseScp(match: RegExpExecArray, spelled: string): Outcome<Remote> {
  const [, user, host = "", path = ""] = match;
  if (user !== undefined && !sshUser.test(user)) return failed("sourceInvalid", "the ssh user is not a name");
  if (!sshHost.test(host)) return failed("sourceInvalid", "the ssh host is not a host");
  if (path.startsWith("-")) return failed("sourceInvalid", "the repository's path is not a path");
  return done({ kind: "ssh", spelled, host, port: 22 });
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function parseCommit(commit: string): Outcome<string> {
  if (/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/i.test(commit)) return done(commit.toLowerCase());
  return failed("sourceInvalid", "the commit is not a full object name of 40 or 64 hexadecimal digits");
}

/** The full names a ref may stand for, in the order they are tried. Git's own rules for names, and no wildcards. */
export function parseRef(ref: string): Outcome<readonly string[]> {
  if (!isRefName(ref)) return failed("sourceInvalid", `${JSON.stringify(ref.slice(0, 100))} is not the name of a ref`);
  if (ref === "HEAD" || ref.startsWith("refs/")) return done([ref]);
  return done([`refs/heads/${ref}`, `refs/tags/${ref}`]);
}

function isRefName(ref: string): boolean {
  if (ref === "" || ref === "@" || unprintable.test(ref) || /[~^:?*[\\]|\.\.|@\{|\/\//.test(ref)) return false;
  const parts = ref.split("/");
  return !ref.startsWith("-") && parts.every((part) => part !== "" && !/^[.-]|\.lock$|\.$/.test(part));
}
