/**
 * Whether two URLs are of the same repository: by HTTPS or SSH, with any port, user and case, with or without `.git`. A wrong match
 * only costs a request, so in doubt it is the same.
 */

/** `HOST/PATH` in lower case; without a known host, `/PATH`. Undefined for a text that names no repository. */
export function repositoryId(text: string): string | undefined {
  const place = placeOf(text.trim());
  if (!place) return undefined;
  const path = decoded(place.path)
    .toLowerCase()
    .replace(/(?<!\/)\/+$/, "")
    .replace(/\.git$/, "");
  const segments = path.split("/").filter((segment) => segment !== "");
  if (segments.length === 0) return undefined;
  const host = place.host.toLowerCase();
  const id = idOf(sshHosts.get(host) ?? host, segments);
  return id.endsWith("/") ? undefined : id;
}

/** `id` may be without a host. */
export const isSameRepository = (one: string, id: string): boolean =>
  one === id || (id.startsWith("/") && one.endsWith(id));

/** Hosts that serve SSH on the port of HTTPS, for networks that allow no other. */
const sshHosts: ReadonlyMap<string, string> = new Map([
  ["ssh.github.com", "github.com"],
  ["altssh.gitlab.com", "gitlab.com"],
  ["altssh.bitbucket.org", "bitbucket.org"],
]);

interface Place {
  readonly host: string;
  readonly path: string;
}

function placeOf(text: string): Place | undefined {
  const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? URL.parse(text) : undefined;
  if (url) return { host: url.hostname, path: url.pathname };
  const [, host, path] = /^(?:[^@/:]+@)?([^:/@]+):(?!\/\/)(.+)$/.exec(text) ?? [];
  if (host !== undefined && path !== undefined) return { host, path };
  return /^[^:/\s]+\/[^:\s]+$/.test(text) ? { host: "", path: text } : undefined;
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

function idOf(host: string, segments: readonly string[]): string {
  const azure = azureId(host, segments);
  if (azure !== undefined) return azure;
  // Bitbucket Data Center adds a segment to the URL for HTTPS.
  return `${host}/${segments.filter((segment) => segment !== "scm").join("/")}`;
}

/** Azure DevOps has other paths for SSH, and had another domain. */
function azureId(host: string, segments: readonly string[]): string | undefined {
  const [, organization] = /^([^.]+)\.visualstudio\.com$/.exec(host) ?? [];
  const isSsh = host === "ssh.dev.azure.com" || host === "vs-ssh.visualstudio.com";
  if (isSsh) return `dev.azure.com/${segments.slice(1).join("/")}`;
  if (host !== "dev.azure.com" && organization === undefined) return undefined;
  const path = [...(organization === undefined ? [] : [organization]), ...segments];
  const git = path.indexOf("_git");
  // A repository with the name of its project.
  if (git === 1) path.splice(1, 0, path[2] ?? "");
  const parts = path.filter((segment) => segment !== "_git" && segment !== "defaultcollection");
  return `dev.azure.com/${parts.join("/")}`;
}
