/** Whether a proxy in front of the console has answered in its place. Pure. */

export type Answer = Pick<Response, "type" | "status" | "headers">;

/** With a redirect or a page, which the console never sends for data: the user has to sign in at the proxy. */
export function isProxySignIn({ type, status, headers }: Answer): boolean {
  if (type === "opaqueredirect") return true;
  const isPage = headers.get("content-type")?.startsWith("text/html") === true;
  // Other pages, such as 502, are about a console that cannot be reached.
  return isPage && [200, 401, 403].includes(status);
}
