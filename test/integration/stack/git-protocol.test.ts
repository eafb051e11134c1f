/** Refs read by requests of this process, and when a git process has to read them: with a real Git server. */
import { afterAll, describe, expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createRepository, serveGit, type GitServerOptions } from "@pko/agent/testing";
import { certificateFor, type Certificate } from "../../../packages/git/src/testing/certificate.ts";
import { gitLister, type GitRemote } from "@pko/operator";

const root = mkdtempSync(join(tmpdir(), "git-protocol-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const repository = createRepository(root, "web");
const main = repository.commit({ file: "1" });
repository.commit({ file: "2" }, "main-2");
repository.git("tag", "--annotate", "--message", "a tag", "v1", main);
repository.git("tag", "plain", main);
createRepository(root, "empty");

const policy = { allowHttp: true, allowedAddresses: ["127.0.0.1"] };
const { signal } = new AbortController();
type Around = NonNullable<GitServerOptions["around"]>;

/** Lists refs as the poller does: with a git process if it has to be one. */
async function list(options: GitServerOptions, changes: { readonly path?: string } & Partial<GitRemote> = {}) {
  const { path = "web.git", ...other } = changes;
  const server = serveGit(root, options);
  try {
    const lister = gitLister({ policy, inherited: process.env });
    const url = `http://127.0.0.1:${server.port}/${path}`;
    const remote: GitRemote = { url, credentials: { kind: "none" }, ...other };
    const refs = ["refs/heads/main", "refs/tags/v1", "refs/tags/plain", "refs/heads/missing"];
    const inProcess = await lister.list(remote, { refs, transport: lister.transportFor(remote), signal });
    const needsGit = inProcess.kind === "needsGit";
    const transport = lister.transportFor(remote);
    const listed = needsGit ? await lister.list(remote, { refs, transport, signal }) : inProcess;
    const again = await lister.list(remote, { refs, transport, signal });
    return { needsGit, transport, listed, again, requests: server.requests };
  } finally {
    await server.stop();
  }
}

const all = {
  kind: "listed",
  commits: new Map([
    ["refs/heads/main", main],
    ["refs/tags/plain", main],
    ["refs/tags/v1", main],
  ]),
};

describe("this process reads", () => {
  test("a branch, a tag and the commit of an annotated tag, and discovers once what the server supports", async () => {
    const { needsGit, listed, again, requests } = await list({});
    expect([needsGit, listed, again]).toEqual([false, all, all] as never);
    const [discovery, ...others] = requests.map(({ path }) => path);
    expect(discovery).toBe("/web.git/info/refs?service=git-upload-pack");
    expect(others).toEqual(["/web.git/git-upload-pack", "/web.git/git-upload-pack"]);
  }, 180_000);

  test("an empty repository: it has no refs", async () => {
    const { needsGit, listed } = await list({}, { path: "empty.git" });
    expect([needsGit, listed]).toEqual([false, { kind: "listed", commits: new Map() }]);
  }, 180_000);

  test("a SHA-256 repository", async () => {
    const folder = join(root, "sha256.git");
    const git = (...args: string[]): string => execFileSync("git", args, { cwd: folder, encoding: "utf8" }).trim();
    execFileSync("git", ["init", "--quiet", "--bare", "--object-format=sha256", "--initial-branch=main", folder]);
    const tree = git("hash-object", "-t", "tree", "-w", "/dev/null");
    const who = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
    const commit = git(...who, "commit-tree", "-m", "one", tree);
    git("update-ref", "refs/heads/main", commit);
    const { needsGit, listed } = await list({}, { path: "sha256.git" });
    expect([needsGit, listed]).toEqual([false, { kind: "listed", commits: new Map([["refs/heads/main", commit]]) }]);
    expect(commit).toHaveLength(64);
  }, 180_000);

  test("a compressed response", async () => {
    const around: Around = async (request, serve) => {
      const response = await serve(request);
      const { headers } = response;
      headers.set("content-encoding", "gzip");
      headers.delete("content-length");
      return new Response(Bun.gzipSync(await response.bytes()), { headers });
    };
    const { needsGit, listed } = await list({ around });
    expect([needsGit, listed]).toEqual([false, all] as never);
  }, 180_000);

  test("with the credentials in the first request", async () => {
    const credentials = { kind: "token", token: "secret" } as const;
    const { listed, requests } = await list({ credentials: "git:secret" }, { credentials });
    expect(listed).toEqual(all as never);
    expect(requests.map(({ authorization }) => authorization)).toEqual(
      requests.map(() => `Basic ${btoa("git:secret")}`),
    );
  }, 180_000);
});

describe("the certificate of a server", () => {
  const listOver = async (tls: Certificate, ca: string) => {
    const server = serveGit(root, { tls });
    try {
      const lister = gitLister({ policy, inherited: process.env });
      const request = { refs: ["refs/heads/main"], signal } as const;
      const url = `https://127.0.0.1:${server.port}/web.git`;
      const remote: GitRemote = { url, credentials: { kind: "none" }, ca };
      const first = await lister.list(remote, { ...request, transport: "http" });
      return first.kind === "needsGit" ? await lister.list(remote, { ...request, transport: "git" }) : first;
    } finally {
      await server.stop();
    }
  };

  test("is trusted with the CA of the Secret", async () => {
    const tls = certificateFor("127.0.0.1");
    const listed = { kind: "listed", commits: new Map([["refs/heads/main", main]]) };
    expect(await listOver(tls, tls.cert)).toEqual(listed as never);
  }, 180_000);

  test("is not trusted if another CA has signed it, or if it has another name; git explains that", async () => {
    const message = expect.stringContaining("is not trusted") as string;
    const untrusted = { kind: "failed", problem: "refused", message } as const;
    expect(await listOver(certificateFor("127.0.0.1"), certificateFor("127.0.0.1").cert)).toEqual(untrusted);
    const other = certificateFor("git.example");
    expect(await listOver(other, other.cert)).toEqual(untrusted);
  }, 180_000);
});

describe("a proxy", () => {
  test("receives the requests of this process, for a name that only it can resolve", async () => {
    const server = serveGit(root);
    const seen: string[] = [];
    using proxy = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      async fetch(request) {
        seen.push(new URL(request.url).host);
        const url = new URL(request.url);
        url.host = `127.0.0.1:${server.port}`;
        const { method, headers } = request;
        return await fetch(url, { method, headers, ...(method === "POST" && { body: await request.text() }) });
      },
    });
    try {
      const inherited = { http_proxy: `http://127.0.0.1:${proxy.port}` };
      const lister = gitLister({ policy, inherited });
      const remote: GitRemote = { url: "http://git.internal.example/web.git", credentials: { kind: "none" } };
      const listed = await lister.list(remote, { refs: ["refs/heads/main"], transport: "http", signal });
      expect(listed).toEqual({ kind: "listed", commits: new Map([["refs/heads/main", main]]) });
      expect(seen).toEqual(["git.internal.example", "git.internal.example"]);
    } finally {
      await server.stop();
    }
  }, 180_000);
});

const rejected = (status: number, headers?: Record<string, string>): GitServerOptions => ({
  intercept: () => new Response("no", { status, ...(headers && { headers }) }),
});
const rejects =
  "the Git server rejects the credentials; check the Secret of the credentials and their access to the repository";
const missing =
  "the repository does not exist, or these credentials have no access to it; check the URL and the credentials";
const failures: readonly (readonly [string, GitServerOptions, object])[] = [
  ["401", { credentials: "u:p" }, { problem: "auth", message: rejects }],
  ["403", rejected(403), { problem: "auth", message: rejects }],
  ["404", rejected(404), { problem: "notFound", message: missing }],
  ["500", rejected(500), { problem: "unreachable", message: "the repository cannot be reached" }],
  ["429", rejected(429, { "retry-after": "90" }), { problem: "unreachable", retryAfterMs: 90_000 }],
  [
    "503",
    rejected(503, { "retry-after": "Mon, 16 Nov 2026 00:02:00 GMT", date: "Mon, 16 Nov 2026 00:00:00 GMT" }),
    { problem: "unreachable", retryAfterMs: 120_000 },
  ],
];
test.each(failures)(
  "this process reports status %s as git does",
  async (_, options, expected) => {
    const { needsGit, listed } = await list(options);
    expect(needsGit).toBe(false);
    expect(listed).toMatchObject({ kind: "failed", ...expected });
    const { retryAfterMs: __, ...explained } = listed as { retryAfterMs?: number };
    expect(await listWithGit(options)).toEqual(explained as never);
  },
  180_000,
);

async function listWithGit(options: GitServerOptions) {
  const server = serveGit(root, options);
  try {
    const remote: GitRemote = { url: `http://127.0.0.1:${server.port}/web.git`, credentials: { kind: "none" } };
    const request = { refs: ["refs/heads/main"], transport: "git", signal } as const;
    return await gitLister({ policy, inherited: process.env }).list(remote, request);
  } finally {
    await server.stop();
  }
}

test("after a failure, this process discovers again what the server supports", async () => {
  let isFirst = true;
  const intercept = (request: Request): Response | undefined => {
    if (!isQuery(request) || !isFirst) return undefined;
    isFirst = false;
    return new Response(null, { status: 500 });
  };
  const { listed, again, requests } = await list({ intercept });
  expect(listed).toMatchObject({ kind: "failed", problem: "unreachable" });
  expect(again).toEqual(all as never);
  expect(requests.filter(({ path }) => path.includes("/info/refs"))).toHaveLength(2);
}, 180_000);

/** The server ignores the requested version of the protocol. */
const version0: Around = (request, serve) => {
  const old = new Request(request);
  old.headers.delete("git-protocol");
  return serve(old);
};

const isQuery = ({ url }: Request): boolean => url.endsWith("/git-upload-pack");

/** Changes the first response to a query: later ones are for git. */
function changingTheFirst(change: (body: Uint8Array) => Uint8Array): Around {
  let isFirst = true;
  return async (request, serve) => {
    const response = await serve(request);
    if (!isQuery(request) || !isFirst) return response;
    isFirst = false;
    return new Response(Buffer.from(change(await response.bytes())), { headers: response.headers });
  };
}

const odd: readonly (readonly [string, GitServerOptions, object])[] = [
  ["a server without version 2", { around: version0 }, all],
  ["a response without its end", { around: changingTheFirst((body) => body.subarray(0, -4)) }, all],
  ["a response that is cut off within a line", { around: changingTheFirst((body) => body.subarray(0, 30)) }, all],
  ["an empty response", { around: changingTheFirst(() => new Uint8Array()) }, all],
];
test("a page for people is no repository without branches", async () => {
  for (const status of [200, 203]) {
    const page = (): Response =>
      new Response("<html>Sign in</html>", { status, headers: { "content-type": "text/html" } });
    const { needsGit, listed } = await list({ intercept: page });
    expect(needsGit).toBe(false);
    expect(listed).toMatchObject({ kind: "failed", problem: "notFound" });
  }
}, 180_000);

test.each(odd)(
  "a git process reads %s, also the next time",
  async (_, options, expected) => {
    const { needsGit, transport, listed, again } = await list(options);
    expect([needsGit, transport]).toEqual([true, "git"]);
    expect([listed, again]).toEqual([expected, expected] as never);
  },
  180_000,
);

test("a connection that breaks within the response is no missing branch", async () => {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", (data) => {
      const isQuery = data.toString().startsWith("POST");
      const type = `content-type: application/x-git-upload-pack-${isQuery ? "result" : "advertisement"}`;
      const body = isQuery ? "003d" : "000eversion 2\n000cls-refs\n0000";
      socket.end(`HTTP/1.1 200 OK\r\n${type}\r\ncontent-length: ${isQuery ? 100 : body.length}\r\n\r\n${body}`);
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    const remote: GitRemote = { url: `http://127.0.0.1:${port}/web.git`, credentials: { kind: "none" } };
    const request = { refs: ["refs/heads/main"], transport: "http", signal } as const;
    const listed = await gitLister({ policy, inherited: {} }).list(remote, request);
    expect(listed).toEqual({ kind: "failed", problem: "unreachable", message: "the repository cannot be reached" });
  } finally {
    await new Promise((resolve) => void server.close(resolve));
  }
}, 180_000);

const socks = { all_proxy: "socks5://127.0.0.1:1" };
const transports: readonly (readonly [string, string, Record<string, string>, "http" | "git"])[] = [
  ["https", "https://git.example/web.git", {}, "http"],
  ["ssh", "ssh://git@git.example/web.git", {}, "git"],
  ["ssh in its short form", "git@git.example:web.git", {}, "git"],
  ["an HTTP proxy", "https://git.example/web.git", { https_proxy: "http://proxy.example:3128" }, "http"],
  ["a SOCKS proxy", "https://git.example/web.git", socks, "git"],
  ["a SOCKS proxy with an exception", "https://git.example/web.git", { ...socks, no_proxy: "git.example" }, "http"],
  ["a URL that is refused", "ext::sh -c touch", {}, "http"],
];
for (const [name, url, inherited, expected] of transports) {
  test(`the transport for ${name} is chosen without a request`, () => {
    expect(gitLister({ policy, inherited }).transportFor({ url, credentials: { kind: "none" } })).toBe(expected);
  });
}
