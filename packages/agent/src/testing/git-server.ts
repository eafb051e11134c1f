/** For tests: Git repositories, and a real Git server (smart HTTP, `git http-backend`) on loopback. */
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

export interface TestRepository {
  /** The bare repository that the server serves. */
  readonly folder: string;
  /** Replaces the tree with these files and returns the commit. `->x` is a link to x, bytes are an executable. */
  commit(files: Readonly<Record<string, string | Uint8Array>>, branch?: string): string;
  git(...args: string[]): string;
}

const identity = {
  GIT_AUTHOR_NAME: "t",
  GIT_AUTHOR_EMAIL: "t@example.com",
  GIT_COMMITTER_NAME: "t",
  GIT_COMMITTER_EMAIL: "t@example.com",
  GIT_CONFIG_GLOBAL: "/dev/null",
};

export function createRepository(root: string, name: string): TestRepository {
  const folder = join(root, `${name}.git`);
  const work = join(root, `${name}-work`);
  const run = (cwd: string, args: readonly string[]): string =>
    execFileSync("git", args, { cwd, encoding: "utf8", env: { ...process.env, ...identity }, stdio: "pipe" }).trim();
  mkdirSync(root, { recursive: true });
  run(root, ["init", "--quiet", "--bare", "--initial-branch=main", folder]);
  run(folder, ["config", "http.receivepack", "true"]);
  run(root, ["clone", "--quiet", folder, work]);
  return {
    folder,
    git: (...args) => run(folder, args),
    commit(files, branch = "main") {
      run(work, ["checkout", "--quiet", "-B", branch]);
      for (const name of run(work, ["ls-files"]).split("\n")) if (name) rmSync(join(work, name), { force: true });
      for (const [path, content] of Object.entries(files)) {
        mkdirSync(dirname(join(work, path)), { recursive: true });
        // An empty directory may have the name.
        rmSync(join(work, path), { recursive: true, force: true });
        if (typeof content !== "string") writeFileSync(join(work, path), content, { mode: 0o755 });
        else if (content.startsWith("->")) symlinkSync(content.slice(2), join(work, path));
        else writeFileSync(join(work, path), content);
      }
      run(work, ["add", "--all", "--force"]);
      run(work, ["commit", "--quiet", "--allow-empty", "--message", "change"]);
      run(work, ["push", "--quiet", "--force", "origin", branch]);
      return run(work, ["rev-parse", "HEAD"]);
    },
  };
}

export interface GitServer {
  readonly port: number;
  readonly requests: { readonly path: string; readonly authorization: string | null }[];
  stop(): Promise<void>;
}

type Serve = (request: Request) => Promise<Response>;

export interface GitServerOptions {
  /** "user:password" that every request must have. */
  readonly credentials?: string;
  /** May return a response instead of git's. */
  readonly intercept?: (request: Request) => Response | undefined;
  /** May change the request before `serve`, and the response after it. */
  readonly around?: (request: Request, serve: Serve) => Promise<Response>;
  readonly tls?: { readonly cert: string; readonly key: string };
  /** The address to listen on; by default 127.0.0.1. */
  readonly hostname?: string;
}

export function serveGit(root: string, options: GitServerOptions = {}): GitServer {
  const requests: { path: string; authorization: string | null }[] = [];
  const server = Bun.serve({
    hostname: options.hostname ?? "127.0.0.1",
    port: 0,
    // Nothing is sent until git has ended, which takes long on a busy machine.
    idleTimeout: 240,
    ...(options.tls && { tls: options.tls }),
    async fetch(request) {
      const url = new URL(request.url);
      const authorization = request.headers.get("authorization");
      requests.push({ path: url.pathname + url.search, authorization });
      const answer = options.intercept?.(request);
      if (answer) return answer;
      if (options.credentials && authorization !== `Basic ${btoa(options.credentials)}`) {
        return new Response(null, { status: 401, headers: { "www-authenticate": 'Basic realm="git"' } });
      }
      const serve: Serve = (each) => cgi(root, each);
      return await (options.around ? options.around(request, serve) : serve(request));
    },
  });
  return { port: server.port ?? 0, requests, stop: () => server.stop(true) };
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
  // git does not read the body if there is no such repository, for example.
  child.stdin.on("error", () => undefined);
  child.stdin.end(Buffer.from(await request.arrayBuffer()));
  const output = await new Response(child.stdout as unknown as ReadableStream).bytes();
  const text = Buffer.from(output);
  const end = text.indexOf("\r\n\r\n");
  const headers = new Headers();
  for (const line of text.subarray(0, end).toString("latin1").split("\r\n")) {
    const colon = line.indexOf(":");
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  const status = Number(headers.get("status")?.split(" ")[0] ?? "200");
  headers.delete("status");
  return new Response(text.subarray(end + 4), { status, headers });
}
