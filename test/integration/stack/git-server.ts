/** A real git server on loopback: `git http-backend` behind smart http. */
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface GitServer extends Disposable {
  readonly url: string;
  /** The paths that were asked for. */
  readonly requests: string[];
  /** "user:password" that every request must carry. */
  credentials: string | undefined;
  /** The authorization of each request. */
  readonly authorizations: (string | null)[];
  /** Requests below this path are sent elsewhere. */
  moved: { readonly from: string; readonly to: string } | undefined;
  /** Answers every request with this status. */
  status: number | undefined;
  commit(branch?: string): string;
  git(...args: string[]): string;
}

const identity = {
  GIT_AUTHOR_NAME: "t",
  GIT_AUTHOR_EMAIL: "t@example.com",
  GIT_COMMITTER_NAME: "t",
  GIT_COMMITTER_EMAIL: "t@example.com",
  GIT_CONFIG_GLOBAL: "/dev/null",
};

export interface GitServerOptions {
  readonly tls?: { readonly cert: string; readonly key: string };
}

export function gitServer({ tls }: GitServerOptions = {}): GitServer {
  const root = mkdtempSync(join(tmpdir(), "git-server-"));
  const bare = join(root, "repo.git");
  const work = join(root, "work");
  const run = (cwd: string, args: readonly string[]): string =>
    execFileSync("git", args, { cwd, encoding: "utf8", env: { ...process.env, ...identity }, stdio: "pipe" }).trim();
  run(root, ["init", "--quiet", "--bare", "--initial-branch=main", bare]);
  run(root, ["clone", "--quiet", bare, work]);
  let count = 0;
  const requests: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    ...(tls && { tls }),
    async fetch(request) {
      const url = new URL(request.url);
      requests.push(url.pathname);
      if (self.status !== undefined) return new Response(null, { status: self.status });
      const authorization = request.headers.get("authorization");
      self.authorizations.push(authorization);
      if (self.moved && url.pathname.startsWith(self.moved.from)) {
        const location = self.moved.to + url.pathname.slice(self.moved.from.length) + url.search;
        return new Response(null, { status: 301, headers: { location } });
      }
      if (self.credentials !== undefined && authorization !== `Basic ${btoa(self.credentials)}`) {
        return new Response(null, { status: 401, headers: { "www-authenticate": 'Basic realm="git"' } });
      }
      return await cgi(root, request);
    },
  });
  const self: GitServer = {
    url: `${tls ? "https" : "http"}://127.0.0.1:${server.port ?? 0}/repo.git`,
    requests,
    authorizations: [],
    credentials: undefined,
    moved: undefined,
    status: undefined,
    commit(branch = "main") {
      run(work, ["checkout", "--quiet", "-B", branch]);
      writeFileSync(join(work, "file"), String(++count));
      run(work, ["add", "--all"]);
      run(work, ["commit", "--quiet", "--message", "change"]);
      run(work, ["push", "--quiet", "--force", "origin", branch]);
      return run(work, ["rev-parse", "HEAD"]);
    },
    git: (...args) => run(bare, args),
    [Symbol.dispose]() {
      void server.stop(true);
      rmSync(root, { recursive: true, force: true });
    },
  };
  return self;
}

async function cgi(root: string, request: Request): Promise<Response> {
  const url = new URL(request.url);
  const child = spawn("git", ["http-backend"], {
    env: {
      PATH: process.env["PATH"] ?? "",
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      REQUEST_METHOD: request.method,
      PATH_INFO: decodeURIComponent(url.pathname),
      QUERY_STRING: url.search.slice(1),
      CONTENT_TYPE: request.headers.get("content-type") ?? "",
      HTTP_CONTENT_ENCODING: request.headers.get("content-encoding") ?? "",
      HTTP_GIT_PROTOCOL: request.headers.get("git-protocol") ?? "",
      REMOTE_USER: "test",
    },
    stdio: ["pipe", "pipe", "ignore"],
  });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  const ended = new Promise((resolve) => child.on("close", resolve));
  child.stdin.end(Buffer.from(await request.arrayBuffer()));
  await ended;
  const output = Buffer.concat(chunks);
  const end = output.indexOf("\r\n\r\n");
  const headers = new Headers();
  for (const line of output.subarray(0, end).toString("latin1").split("\r\n")) {
    const colon = line.indexOf(":");
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  const status = Number(headers.get("status")?.split(" ")[0] ?? "200");
  headers.delete("status");
  return new Response(output.subarray(end + 4), { status, headers });
}
