/** One repository on a real git server, which a test can protect, move or break while it is polled. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createRepository, serveGit, type GitServerOptions } from "@pko/agent/testing";

export interface GitServer extends Disposable {
  readonly url: string;
  /** The requested paths. */
  readonly requests: string[];
  /** "user:password", required in every request. */
  credentials: string | undefined;
  /** The authorization of each request. */
  readonly authorizations: (string | null)[];
  /** Requests below this path are redirected. */
  moved: { readonly from: string; readonly to: string } | undefined;
  /** Answers every request with this status. */
  status: number | undefined;
  /** Answers requests for objects with this status; refs can be listed. */
  fetchStatus: number | undefined;
  commit(branch?: string): string;
  /** A commit with exactly these files. */
  commitFiles(files: Readonly<Record<string, string>>, branch?: string): string;
  git(...args: string[]): string;
}

export function gitServer({ tls }: Pick<GitServerOptions, "tls"> = {}): GitServer {
  const root = mkdtempSync(join(tmpdir(), "git-server-"));
  const repository = createRepository(root, "repo");
  let count = 0;
  const intercept = (request: Request): Response | undefined => {
    const { pathname, search } = new URL(request.url);
    const authorization = request.headers.get("authorization");
    self.requests.push(pathname);
    if (self.status !== undefined) return new Response(null, { status: self.status });
    self.authorizations.push(authorization);
    if (self.moved && pathname.startsWith(self.moved.from)) {
      const location = self.moved.to + pathname.slice(self.moved.from.length) + search;
      return new Response(null, { status: 301, headers: { location } });
    }
    if (self.credentials === undefined || authorization === `Basic ${btoa(self.credentials)}`) return undefined;
    return new Response(null, { status: 401, headers: { "www-authenticate": 'Basic realm="git"' } });
  };
  const around: GitServerOptions["around"] = async (request, serve) => {
    const isFetch = async (): Promise<boolean> => (await request.clone().text()).includes("command=fetch");
    const { fetchStatus: status } = self;
    return status !== undefined && (await isFetch()) ? new Response(null, { status }) : await serve(request);
  };
  const server = serveGit(root, { intercept, around, ...(tls && { tls }) });
  const self: GitServer = {
    url: `${tls ? "https" : "http"}://127.0.0.1:${server.port}/repo.git`,
    requests: [],
    authorizations: [],
    credentials: undefined,
    moved: undefined,
    status: undefined,
    fetchStatus: undefined,
    commit: (branch) => repository.commit({ file: String(++count) }, branch),
    commitFiles: (files, branch) => repository.commit(files, branch),
    git: (...args) => repository.git(...args),
    [Symbol.dispose]() {
      void server.stop();
      rmSync(root, { recursive: true, force: true });
    },
  };
  return self;
}
