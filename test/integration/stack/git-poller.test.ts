/** The poller with a real Git server. */
import { describe, expect, test } from "bun:test";
import { generateKeyPairSync, verify } from "node:crypto";
import { type GitRef } from "@pko/api";
import { manualClock, type Key } from "@pko/kube";
import {
  githubAppTokens,
  gitLister,
  gitPoller,
  type GitCredentials,
  type GitFollow,
  type GitPollResult,
  type GitSettings,
} from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { gitServer, type GitServer } from "./git-server.ts";

const loopback = { policy: { allowHttp: true, allowedAddresses: ["127.0.0.1"] }, inherited: process.env };
const branch = (name: string): GitFollow["ref"] => ({ kind: "branch", name });

function polling(server: GitServer, settings: GitSettings = loopback) {
  const clock = manualClock();
  const woken: Key[] = [];
  const lister = gitLister(settings, clock);
  const lists = { ended: 0 };
  const list: typeof lister.list = async (...request) => {
    const refs = await lister.list(...request);
    lists.ended += 1;
    return refs;
  };
  const poller = gitPoller({
    lister: { transportFor: (remote) => lister.transportFor(remote), list },
    wake: (key) => woken.push(key),
    clock,
    random: () => 0,
  });
  const follow = (changes: Partial<GitFollow> = {}): GitFollow => ({
    url: server.url,
    credentials: { kind: "none" },
    ref: branch("main"),
    everyMs: 60_000,
    request: "1",
    ...changes,
  });
  /** Reads the current result and follows it, as a pass of the Stack does. */
  const read = (key: Key, changes: Partial<GitFollow> = {}): GitPollResult => {
    const seen = poller.latest(key, follow(changes));
    poller.follow(key, follow(changes), seen);
    return seen;
  };
  /** Advances time until the poller has a result. */
  const result = async (key: Key, changes: Partial<GitFollow> = {}): Promise<GitPollResult> => {
    if (read(key, changes).kind === "pending") {
      await clock.advance(100);
      await waitFor(() => read(key, changes).kind !== "pending", { timeoutMs: 45_000 });
    }
    return read(key, changes);
  };
  return { clock, woken, poller, lists, read, result };
}

describe("finds", () => {
  test("a branch by its name, the commit of a tag, and any other ref", async () => {
    using server = gitServer();
    const first = server.commit();
    const side = server.commit("side");
    server.git("tag", "-a", "-m", "a tag", "v1", first);
    server.git("tag", "plain", first);
    server.git("update-ref", "refs/pull/7/head", side);
    const { result } = polling(server);
    const cases: [GitRef & GitFollow["ref"], string][] = [
      [{ kind: "branch", name: "main" }, first],
      [{ kind: "branch", name: "side" }, side],
      [{ kind: "branch", name: "v1" }, first],
      [{ kind: "tag", name: "v1" }, first],
      [{ kind: "tag", name: "plain" }, first],
      [{ kind: "other", name: "refs/pull/7/head" }, side],
    ];
    for (const [index, [ref, commit]] of cases.entries()) {
      expect(await result(`a/${index}`, { ref })).toEqual({ kind: "found", commit });
    }
  }, 180_000);

  test("a new commit, and reconciles only the Stacks that follow its branch", async () => {
    using server = gitServer();
    server.commit();
    const side = server.commit("side");
    const { clock, woken, read, result } = polling(server);
    await result("a/main");
    expect(await result("a/side", { ref: branch("side") })).toEqual({ kind: "found", commit: side });
    woken.length = 0;
    const commit = server.commit();
    await clock.advance(61_000);
    await waitFor(() => woken.length > 0);
    expect(woken).toEqual(["a/main"]);
    expect(read("a/main")).toEqual({ kind: "found", commit });
  }, 180_000);

  test("the current commit when a poll is requested", async () => {
    using server = gitServer();
    server.commit();
    const { result } = polling(server);
    await result("a/web");
    const commit = server.commit();
    expect(await result("a/web", { request: "2" })).toEqual({ kind: "found", commit });
  }, 180_000);
});

describe("reports", () => {
  const cases: [string, Partial<GitFollow>, (server: GitServer) => void, string][] = [
    ["no such branch", { ref: branch("missing") }, () => undefined, "branchMissing"],
    [
      "wrong credentials",
      { credentials: { kind: "basic", username: "u", password: "no" } },
      (server) => (server.credentials = "u:p"),
      "auth",
    ],
    ["no credentials", {}, (server) => (server.credentials = "u:p"), "auth"],
    ["no such repository", { url: "404" }, () => undefined, "notFound"],
    ["a server error", {}, (server) => (server.status = 503), "unreachable"],
    ["a server that redirects", {}, (server) => (server.status = 301), "refused"],
    ["no server", { url: "http://127.0.0.1:1/repo.git" }, () => undefined, "unreachable"],
    ["a host that does not exist", { url: "https://nowhere.invalid/repo.git" }, () => undefined, "unreachable"],
    ["a transport helper", { url: "ext::sh -c touch% /tmp/x" }, () => undefined, "refused"],
    ["a file", { url: "file:///etc" }, () => undefined, "refused"],
    ["an option", { url: "--upload-pack=touch" }, () => undefined, "refused"],
    ["the metadata service", { url: "https://169.254.169.254/repo.git" }, () => undefined, "refused"],
    ["ssh without a key", { url: "git@127.0.0.1:repo.git" }, () => undefined, "auth"],
  ];
  for (const [name, changes, arrange, problem] of cases) {
    test(`${name}: ${problem}`, async () => {
      using server = gitServer();
      server.commit();
      arrange(server);
      const { result } = polling(server);
      const url = changes.url === "404" ? server.url.replace("repo", "other") : changes.url;
      expect(await result("a/web", { ...changes, ...(url !== undefined && { url }) })).toMatchObject({
        kind: "failed",
        problem,
      });
    }, 180_000);
  }

  test("loopback addresses, unless they are allowed", async () => {
    using server = gitServer();
    const { result } = polling(server, { ...loopback, policy: { allowHttp: true, allowedAddresses: [] } });
    expect(await result("a/web")).toMatchObject({ problem: "refused" });
    expect(server.requests).toEqual([]);
  }, 180_000);

  test("the third failure in a row of a repository that was polled before", async () => {
    using server = gitServer();
    const commit = server.commit();
    const { clock, woken, lists, read, result } = polling(server);
    await result("a/web");
    woken.length = 0;
    server.status = 503;
    for (let failure = 1; failure <= 3; failure++) {
      expect(read("a/web")).toEqual({ kind: "found", commit });
      const { ended } = lists;
      await clock.advance(61_000);
      // The next poll is scheduled when the result of this one is recorded. While it runs, its time limits are pending.
      await waitFor(() => lists.ended > ended && clock.pending === 1);
    }
    await waitFor(() => woken.length === 1);
    expect(read("a/web")).toMatchObject({ kind: "failed", problem: "unreachable" });
    server.status = undefined;
    await clock.advance(61_000);
    await waitFor(() => woken.length === 2);
    expect(read("a/web")).toEqual({ kind: "found", commit });
  }, 180_000);
});

describe("a repository that has moved", () => {
  test("is found, with the credentials if the origin is the same", async () => {
    using server = gitServer();
    server.credentials = "u:p";
    const commit = server.commit();
    server.moved = { from: "/old", to: server.url };
    const url = server.url.replace("repo.git", "old");
    const { result } = polling(server);
    const credentials: GitCredentials = { kind: "basic", username: "u", password: "p" };
    expect(await result("a/web", { url, credentials })).toEqual({ kind: "found", commit });
  }, 180_000);

  test("is requested without credentials at another origin", async () => {
    using server = gitServer();
    using other = gitServer();
    other.commit();
    other.credentials = "u:p";
    server.moved = { from: "/old", to: other.url };
    const url = server.url.replace("repo.git", "old");
    const { result } = polling(server);
    const credentials: GitCredentials = { kind: "basic", username: "u", password: "p" };
    expect(await result("a/web", { url, credentials })).toMatchObject({ kind: "failed" });
    expect(other.authorizations).toEqual([null]);
  }, 180_000);

  test("is not requested at an address that is not allowed", async () => {
    using server = gitServer();
    server.moved = { from: "/old", to: "http://169.254.169.254/repo.git" };
    const url = server.url.replace("repo.git", "old");
    expect(await polling(server).result("a/web", { url })).toMatchObject({ kind: "failed", problem: "refused" });
  }, 180_000);
});

describe("a GitHub App", () => {
  test("exchanges its key for a token, caches the token, and authenticates with it", async () => {
    using server = gitServer();
    server.credentials = "x-access-token:installation-token";
    const commit = server.commit();
    const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const claims: string[] = [];
    using api = tokenApi((request) => {
      const claim = request.headers.get("authorization")?.slice("Bearer ".length) ?? "";
      claims.push(claim);
      const [head = "", body = "", signature = ""] = claim.split(".");
      const isSigned = verify(
        "RSA-SHA256",
        Buffer.from(`${head}.${body}`),
        publicKey,
        Buffer.from(signature, "base64url"),
      );
      if (!isSigned || !request.url.endsWith("/app/installations/7/access_tokens"))
        return new Response(null, { status: 401 });
      return Response.json({ token: "installation-token", expires_at: new Date(Date.now() + 3_600_000).toISOString() });
    });
    const githubApps = githubAppTokens({ policy: loopback.policy, apiOf: () => api.url });
    const { result, clock, read } = polling(server, { ...loopback, githubApps });
    const pem = privateKey.export({ type: "pkcs8", format: "pem" });
    const credentials: GitCredentials = { kind: "githubApp", appId: "1", installationId: "7", privateKey: pem };
    expect(await result("a/web", { credentials })).toEqual({ kind: "found", commit });
    const next = server.commit();
    await clock.advance(61_000);
    await waitFor(() => Bun.deepEquals(read("a/web", { credentials }), { kind: "found", commit: next }));
    expect(claims.length).toBe(1);
    const wrong: GitCredentials = { ...credentials, privateKey: "no key" };
    expect(await result("b/web", { credentials: wrong })).toMatchObject({ problem: "auth" });
    const other: GitCredentials = { ...credentials, installationId: "8" };
    expect(await result("c/web", { credentials: other })).toMatchObject({ problem: "auth" });
  }, 180_000);
});

function tokenApi(respond: (request: Request) => Response): Disposable & { readonly url: string } {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: respond });
  return { url: `http://127.0.0.1:${server.port ?? 0}`, [Symbol.dispose]: () => void server.stop(true) };
}

describe("shares polls", () => {
  test("50 Stacks of one repository take one request", async () => {
    using server = gitServer();
    const commit = server.commit();
    const { clock, woken, poller, read } = polling(server);
    const keys = Array.from({ length: 50 }, (_, index) => `a/${index}`);
    for (const key of keys) expect(read(key)).toEqual({ kind: "pending" });
    await clock.advance(100);
    await waitFor(() => woken.length === 50);
    for (const key of keys) expect(read(key)).toEqual({ kind: "found", commit });
    const paths = server.requests.map((path) => path.slice("/repo.git".length));
    expect(paths).toEqual(["/info/refs", "/git-upload-pack"]);
    for (let minute = 1; minute <= 5; minute++) {
      // A new commit shows that the poll has ended.
      server.commit();
      await clock.advance(60_000);
      await waitFor(() => woken.length === 50 * (minute + 1), { timeoutMs: 30_000, what: `poll ${minute} to end` });
      expect(server.requests.length).toBe(paths.length + minute);
    }
    for (const key of keys) poller.forget(key);
    await clock.advance(600_000);
    expect(server.requests.length).toBe(paths.length + 5);
  }, 180_000);

  test("not with other credentials", async () => {
    using server = gitServer();
    server.credentials = "u:p";
    const commit = server.commit();
    const { result } = polling(server);
    const right: GitCredentials = { kind: "basic", username: "u", password: "p" };
    expect(await result("a/one", { credentials: right })).toEqual({ kind: "found", commit });
    expect(await result("b/one", { credentials: { ...right, password: "x" } })).toMatchObject({ problem: "auth" });
    expect(await result("a/one", { credentials: right })).toEqual({ kind: "found", commit });
  }, 180_000);
});
