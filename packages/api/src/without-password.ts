/** The rest of a URL with a scheme is what follows the host, or the start of a password with a slash. */
const parts = /^(?<start>\s*(?:https?|ssh|git|ftps?):[\s/\\]*)(?<authority>[^/\\?#]*)(?<rest>.*)$/is;
const ipv6 = /(?<=^|@)\[[\da-f:.]+\]/i;
/**
 * A host and a port, and the only `@` at the start of the path: `https://git.example.com:8443/@scope/b`. The host is an address or
 * has a dot, and the name after the `@` has none, so that they cannot be a user and a host. For anything else to be meant, somebody
 * with a dot in the user name would need a password of a few digits and a slash.
 */
const scopeAfterPort =
  /^(?:https?|ssh):\/\/(?:[a-z\d-]+(?:\.[a-z\d-]+)+|\[[\da-f:.]+\]):\d{1,5}\/@[\w~-]+(?:\/[^@]*)?$/i;

/** URL parsers agree that the port is one. */
const hasScopeAfterPort = (url: string): boolean => scopeAfterPort.test(url) && URL.canParse(url);

/**
 * Whether what looks like a port and a path may be a password with a slash: `https://user:12/34@host/path`. With a colon before the
 * path, an `@` in it must be written as `%40`, except that of a scope after a port.
 */
export function mayHavePasswordInPath(url: string): boolean {
  if (hasScopeAfterPort(url)) return false;
  const { authority = "", rest = "" } = parts.exec(url)?.groups ?? {};
  return authority.replace(ipv6, "").includes(":") && rest.includes("@");
}

/**
 * The URL of a repository for messages and pages, which may show one that is not valid. A password may contain `@`: what follows the
 * last one is the host.
 */
export function withoutPassword(url: string): string {
  if (hasScopeAfterPort(url)) return url;
  const { start } = parts.exec(url)?.groups ?? {};
  // `user:password@host:path`, or a scheme that is none.
  if (start === undefined) return withoutUser(url);
  const rest = url.slice(start.length);
  return start + (mayHavePassword(rest.replace(ipv6, "")) ? afterLastAt(rest) : rest.replace(/^[^/\\]*@/, ""));
}

/** The same for the path of a repository, which contains a password if the URL is misspelled. */
export const withoutUser = (path: string): string => (mayHavePassword(path) ? afterLastAt(path) : path);

/** Whether there is a colon before an `@`. Anybody may write the text, and a pattern such as `:.*@` takes quadratic time. */
function mayHavePassword(text: string): boolean {
  const colon = text.indexOf(":");
  return colon >= 0 && colon < text.lastIndexOf("@");
}

const afterLastAt = (text: string): string => text.slice(text.lastIndexOf("@") + 1);
