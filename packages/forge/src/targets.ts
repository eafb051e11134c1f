/** Which API a repository belongs to. Pure. */
import type { ForgeTarget, ForgeType } from "./types.ts";

export interface RemoteRepository {
  /** With the port, if the repository is read over HTTP. */
  readonly host: string;
  /** Without leading slash and `.git`. */
  readonly path: string;
  /** How the API is reached: as the repository, or with TLS if that is read over SSH. */
  readonly scheme: "https" | "http";
}

const scpForm = /^(?:[^@/:]+@)?(\[[^\]]+\]|[^/:@]+):(?!\/\/)(.+)$/;

/** The host and path of a repository's URL, in any form that git accepts. */
export function repositoryOf(remoteURL: string): RemoteRepository | undefined {
  const scp = remoteURL.includes("://") ? null : scpForm.exec(remoteURL);
  if (scp) return remoteRepository("https", scp[1] ?? "", scp[2] ?? "");
  const url = URL.parse(remoteURL);
  if (url?.protocol === "ssh:") return remoteRepository("https", url.hostname, url.pathname);
  if (url?.protocol === "http:") return remoteRepository("http", url.host, url.pathname);
  return url?.protocol === "https:" ? remoteRepository("https", url.host, url.pathname) : undefined;
}

function remoteRepository(scheme: "https" | "http", host: string, rawPath: string): RemoteRepository | undefined {
  const path = decoded(rawPath)
    .replace(/^\/+/, "")
    .replace(/(?<!\/)\/+$/, "")
    .replace(/\.git$/, "");
  return host === "" || path === "" ? undefined : { scheme, host: host.toLowerCase(), path };
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

interface TargetSettings {
  readonly type: ForgeType;
  /** The root of the API. */
  readonly url?: string;
  readonly repository?: string;
}

/** What is not set is derived from the URL of the Git repository. Undefined if that is not possible. */
export function targetOf(settings: TargetSettings, remoteURL: string | undefined): ForgeTarget | undefined {
  const remote = remoteURL === undefined ? undefined : repositoryOf(remoteURL);
  const { type } = settings;
  const repository = settings.repository ?? (remote && repositoryPath(type, remote.path));
  const url = settings.url ?? (remote && apiRoot(type, remote)) ?? publicRoots[type];
  return repository === undefined || url === undefined ? undefined : { type, url, repository };
}

const publicRoots: Readonly<Partial<Record<ForgeType, string>>> = {
  GitHub: "https://api.github.com",
  GitLab: "https://gitlab.com/api/v4",
  Bitbucket: "https://api.bitbucket.org/2.0",
};

/** The root of the API where the administrator of the forge has not moved it. */
function apiRoot(type: ForgeType, { scheme, host }: RemoteRepository): string | undefined {
  const origin = `${scheme}://${host}`;
  switch (type) {
    case "GitHub":
      return githubApi({ scheme, host });
    case "GitLab":
      return host === "altssh.gitlab.com" ? publicRoots.GitLab : `${origin}/api/v4`;
    case "Gitea":
      return `${origin}/api/v1`;
    case "Bitbucket":
      return publicRoots.Bitbucket;
    case "BitbucketDataCenter":
      return `${origin}/rest`;
  }
}

/** Of github.com, of an enterprise at ghe.com, or of an Enterprise server. */
export function githubApi({ scheme, host }: Pick<RemoteRepository, "scheme" | "host">): string {
  if (host === "github.com" || host === "ssh.github.com") return "https://api.github.com";
  return host.endsWith(".ghe.com") ? `https://api.${host}` : `${scheme}://${host}/api/v3`;
}

/** Bitbucket Data Center serves repositories over HTTP below `scm/`. */
const repositoryPath = (type: ForgeType, path: string): string =>
  type === "BitbucketDataCenter" ? path.replace(/^(?:.*\/)?scm\//, "") : path;
