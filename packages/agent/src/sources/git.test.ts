/** Uses real Git servers on loopback: smart HTTP with `git http-backend`, and a test SSH server. */
import { afterAll, describe, expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { GitSource } from "@pko/rpc";
import { Redactor } from "../system/redact.ts";
import { temporaryFolder } from "../testing/folders.ts";
import { createRepository, serveGit, type GitServer, type GitServerOptions } from "../testing/git-server.ts";
import { createKey } from "../testing/ssh-keys.ts";
import { serveSsh, type SshServer } from "../testing/ssh-server.ts";
import { fetchGit, unchangedSince, type GitContext } from "./git.ts";

const root = temporaryFolder();
const servers: (GitServer | SshServer)[] = [];
afterAll(async () => {
  for (const server of servers) await server.stop();
});

function serve(options: GitServerOptions = {}): GitServer {
  const server = serveGit(root, options);
  servers.push(server);
  return server;
}

function contextOf(overrides: Partial<GitContext> = {}): GitContext {
  return {
    git: "git",
    state: mkdtempSync(join(root, "state-")),
    policy: { allowHttp: true, allowedAddresses: ["127.0.0.1"] },
    inherited: { PATH: process.env["PATH"] },
    redactor: new Redactor(),
    signal: new AbortController().signal,
    ...overrides,
  };
}

async function get(source: Omit<GitSource, "kind">, context = contextOf()) {
  const fetched = await fetchGit({ kind: "git", ...source }, context);
  if (!fetched.ok) return { reason: fetched.failure.reason, failure: fetched.failure };
  const folder = mkdtempSync(join(root, "tree-"));
  const written = await fetched.value.checkout(folder);
  if (!written.ok) return { reason: written.failure.reason, failure: written.failure };
  await fetched.value.settle();
  return { reason: "ok", commit: fetched.value.commit, folder };
}

const app = createRepository(root, "app");
const first = app.commit({ "Pulumi.yaml": "name: app\nruntime: yaml\n", "infra/a.txt": "1" });
const second = app.commit({ "Pulumi.yaml": "name: app\nruntime: yaml\n", "infra/a.txt": "2" });
app.git("tag", "--no-sign", "v1", first);
app.git("tag", "--no-sign", "-a", "-m", "annotated", "v2", second);
const side = app.commit({ "side.txt": "s" }, "feature/side");
const open = serve();
const url = `http://127.0.0.1:${open.port}/app.git`;

describe("a repository", () => {
  test("shows no local changes when the settings files of its stacks are replaced or added", async () => {
    const settings = createRepository(root, "settings");
    const commit = settings.commit({ "web/Pulumi.dev.yaml": "config: {}\n", "web/other.txt": "1" });
    const context = contextOf();
    const source = { url: `http://127.0.0.1:${open.port}/settings.git`, commit };
    const { folder = "" } = await get(source, context);
    const status = (): string => execFileSync("git", ["status", "--porcelain"], { cwd: folder, encoding: "utf8" });
    rmSync(join(folder, "web/Pulumi.dev.yaml"));
    for (const name of ["dev", "prod"]) symlinkSync("/settings.yaml", join(folder, `web/Pulumi.${name}.yaml`));
    expect(status()).toBe("");
    writeFileSync(join(folder, "web/other.txt"), "2");
    expect(status()).toBe(" M web/other.txt\n");
    // The next checkout has the content of the commit.
    const again = await get(source, context);
    expect(readFileSync(join(again.folder ?? "", "web/Pulumi.dev.yaml"), "utf8")).toBe("config: {}\n");
  });

  test("is checked out at an exact commit, even if no ref points to it", async () => {
    const got = await get({ url, commit: first });
    expect(got.commit).toBe(first);
    expect(readFileSync(join(got.folder ?? "", "infra/a.txt"), "utf8")).toBe("1");
  });

  for (const [ref, commit] of Object.entries({
    main: second,
    "refs/heads/main": second,
    "feature/side": side,
    v1: first,
    v2: second,
    "refs/tags/v1": first,
    HEAD: second,
  })) {
    test(`is checked out at ${ref}`, async () => {
      expect((await get({ url, ref })).commit).toBe(commit);
    });
  }

  test("is fetched without its history, unless it is requested", async () => {
    const context = contextOf();
    const shallow = await get({ url, ref: "main" }, context);
    const log = (folder: string) => execFileSync("git", ["-C", folder, "log", "--format=%H"], { encoding: "utf8" });
    expect(
      log(shallow.folder ?? "")
        .trim()
        .split("\n"),
    ).toEqual([second]);
    const whole = await get({ url, commit: second, shallow: false }, context);
    expect(
      log(whole.folder ?? "")
        .trim()
        .split("\n"),
    ).toEqual([second, first]);
  });

  test("has the commit and a clean status after the checkout", async () => {
    const { folder = "" } = await get({ url, commit: second });
    expect(execFileSync("git", ["-C", folder, "rev-parse", "HEAD"], { encoding: "utf8" }).trim()).toBe(second);
    expect(execFileSync("git", ["-C", folder, "status", "--porcelain"], { encoding: "utf8" })).toBe("");
  });

  test("is not fetched again for the same commit, and incrementally for the next one", async () => {
    const context = contextOf();
    await get({ url, commit: first }, context);
    const before = open.requests.length;
    await get({ url, commit: first }, context);
    expect(open.requests.length).toBe(before);
    const next = await get({ url, commit: second }, context);
    expect(next.commit).toBe(second);
    expect(readdirSync(join(context.state, "git"))).toHaveLength(1);
  });

  test("whose server does not serve commits by hash is fetched by its ref, or completely", async () => {
    const strict = createRepository(root, "strict");
    const old = strict.commit({ "a.txt": "1" });
    strict.commit({ "a.txt": "2" });
    strict.git("config", "uploadpack.allowReachableSHA1InWant", "false");
    strict.git("config", "uploadpack.allowAnySHA1InWant", "false");
    strict.git("config", "protocol.version", "0");
    // With protocol 2 a server serves any object, so this server uses an older one.
    const server = serve({ intercept: (request) => (request.headers.delete("git-protocol"), undefined) });
    const at = `http://127.0.0.1:${server.port}/strict.git`;
    expect((await get({ url: at, commit: old, ref: "main" })).commit).toBe(old);
    expect((await get({ url: at, commit: old })).commit).toBe(old);
  });

  test("with another URL replaces the previous one", async () => {
    createRepository(root, "other").commit({ "o.txt": "o" });
    const context = contextOf();
    await get({ url, ref: "main" }, context);
    const other = await get({ url: `http://127.0.0.1:${open.port}/other.git`, ref: "main" }, context);
    expect(readdirSync(other.folder ?? "").toSorted()).toEqual([".git", "o.txt"]);
    expect(readdirSync(join(context.state, "git"))).toHaveLength(1);
  });

  test("does not fetch submodules", async () => {
    const outer = createRepository(root, "outer");
    outer.commit({ "a.txt": "1", ".gitmodules": `[submodule "x"]\n\tpath = x\n\turl = ${url}\n` });
    const tree = outer.git("write-tree");
    expect(tree).toHaveLength(40);
    const { folder = "" } = await get({ url: `http://127.0.0.1:${open.port}/outer.git`, ref: "main" });
    expect(existsSync(join(folder, "x", "Pulumi.yaml"))).toBe(false);
  });
});

describe("credentials", () => {
  const secret = "canary-7c1e-token";
  const guarded = serve({ credentials: `git:${secret}` });
  const at = `http://127.0.0.1:${guarded.port}/app.git`;

  test("a token gives access to a repository", async () => {
    expect((await get({ url: at, ref: "main", auth: { kind: "token", token: secret } })).commit).toBe(second);
  });

  test("a user and a password give access, also in the URL", async () => {
    const auth = { kind: "basic" as const, username: "git", password: secret };
    expect((await get({ url: at, ref: "main", auth })).commit).toBe(second);
    const inUrl = `http://git:${secret}@127.0.0.1:${guarded.port}/app.git`;
    expect((await get({ url: inUrl, ref: "main" })).commit).toBe(second);
  });

  test("wrong ones differ from a missing repository, and are not repeated", async () => {
    const wrong = "canary-wrong-token";
    const context = contextOf();
    const got = await get({ url: at, ref: "main", auth: { kind: "token", token: wrong } }, context);
    expect(got.reason).toBe("sourceUnauthorized");
    expect(JSON.stringify(got)).not.toContain("canary");
    expect((await get({ url: at, ref: "main" })).reason).toBe("sourceUnauthorized");
  });

  test("are not written to the object store", async () => {
    const context = contextOf();
    await get({ url: at, ref: "main", auth: { kind: "token", token: secret } }, context);
    const found = execFileSync("sh", ["-c", `grep -rl -e ${secret} -e ${btoa(`git:${secret}`)} . || true`], {
      cwd: context.state,
      encoding: "utf8",
    });
    expect(found).toBe("");
  });

  test("an SSH key cannot be used for http", async () => {
    const auth = { kind: "ssh" as const, privateKey: "x", knownHosts: "x" };
    expect((await get({ url: at, ref: "main", auth })).reason).toBe("sourceInvalid");
  });

  test("a token with a line break cannot inject a header", async () => {
    const auth = { kind: "basic" as const, username: "a", password: "b\r\nX-Evil: 1" };
    const got = await get({ url: at, ref: "main", auth });
    expect(got.reason).toBe("sourceInvalid");
    expect(guarded.requests.every(({ authorization }) => !authorization?.includes("Evil"))).toBe(true);
  });
});

describe("redirects", () => {
  const movedTo = (location: string) => (request: Request) => {
    const { pathname, search } = new URL(request.url);
    if (!pathname.startsWith("/moved")) return undefined;
    return new Response(null, {
      status: 301,
      headers: { location: location.replace("*", pathname.slice(6) + search) },
    });
  };

  test("within a server are followed with the credentials", async () => {
    const server: GitServer = serve({
      credentials: "git:secret-token",
      intercept: (request) => movedTo(`http://127.0.0.1:${new URL(request.url).port}*`)(request),
    });
    const at = `http://127.0.0.1:${server.port}/moved/app.git`;
    const got = await get({ url: at, ref: "main", auth: { kind: "token", token: "secret-token" } });
    expect(got.commit).toBe(second);
  });

  test("to another server are followed without the credentials", async () => {
    const target = serve();
    const server = serve({ intercept: movedTo(`http://127.0.0.1:${target.port}*`) });
    const at = `http://127.0.0.1:${server.port}/moved/app.git`;
    const got = await get({ url: at, ref: "main", auth: { kind: "token", token: "secret-token" } });
    expect(got.commit).toBe(second);
    expect(target.requests.length).toBeGreaterThan(0);
    expect(target.requests.every(({ authorization }) => authorization === null)).toBe(true);
  });

  for (const [name, location] of Object.entries({
    "the metadata service": "http://169.254.169.254*",
    loopback: "http://127.0.0.2*",
    "a file": "file:///etc/passwd",
    ssh: "ssh://127.0.0.1/x",
  })) {
    test(`to ${name} are refused`, async () => {
      const server = serve({ intercept: movedTo(location) });
      const got = await get({ url: `http://127.0.0.1:${server.port}/moved/app.git`, ref: "main" });
      expect(got.reason).toBe("sourceInvalid");
    });
  }

  test("without end are not followed forever", async () => {
    const server = serve({
      intercept: (request) => new Response(null, { status: 302, headers: { location: `${request.url}&again` } }),
    });
    const got = await get({ url: `http://127.0.0.1:${server.port}/app.git`, ref: "main" });
    expect(got.reason).toBe("sourceUnavailable");
  });
});

describe("failures", () => {
  test("a branch that does not exist", async () => {
    const got = await get({ url, ref: "nope" });
    expect(got.reason).toBe("sourceNotFound");
    expect(got.failure?.message).toContain("refs/heads/nope");
  });

  test("a commit that does not exist", async () => {
    expect((await get({ url, commit: "a".repeat(40) })).reason).toBe("sourceNotFound");
  });

  test("a repository that does not exist", async () => {
    expect((await get({ url: `http://127.0.0.1:${open.port}/nope.git`, ref: "main" })).reason).toBe("sourceNotFound");
  });

  test("a server that does not listen", async () => {
    expect((await get({ url: "http://127.0.0.1:1/app.git", ref: "main" })).reason).toBe("sourceUnavailable");
  });

  test("a server error, whose body is not repeated", async () => {
    const server = serve({ intercept: () => new Response("internal canary-body", { status: 500 }) });
    const got = await get({ url: `http://127.0.0.1:${server.port}/app.git`, ref: "main" });
    expect(got.reason).toBe("sourceUnavailable");
    expect(JSON.stringify(got)).not.toContain("canary-body");
  });

  test("a forbidden address, before anything is sent", async () => {
    const policy = { allowHttp: true, allowedAddresses: [] };
    const before = open.requests.length;
    expect((await get({ url, ref: "main" }, contextOf({ policy }))).reason).toBe("sourceInvalid");
    expect(
      (await get({ url: `http://localhost:${open.port}/app.git`, ref: "main" }, contextOf({ policy }))).reason,
    ).toBe("sourceInvalid");
    expect(open.requests.length).toBe(before);
  });

  test("an image whose git is too old for settings in variables", async () => {
    const old = join(root, "old-git");
    writeFileSync(old, "#!/bin/sh\necho git version 2.20.1\n", { mode: 0o755 });
    const got = await get({ url, ref: "main" }, contextOf({ git: old }));
    expect(got.reason).toBe("toolMissing");
    expect(got.failure?.message).toContain("2.31");
  });

  test("an image without git", async () => {
    expect((await get({ url, ref: "main" }, contextOf({ git: "/nonexistent/git" }))).reason).toBe("toolMissing");
  });

  test("neither commit nor ref", async () => {
    expect((await get({ url })).reason).toBe("sourceInvalid");
  });

  test("a superseded request", async () => {
    const abort = new AbortController();
    abort.abort();
    expect((await get({ url, ref: "main" }, contextOf({ signal: abort.signal }))).reason).toBe("superseded");
  });
});

describe("https", () => {
  const tls = certificate();
  const secure = serve({ tls, credentials: "git:canary-https" });
  const auth = { kind: "token" as const, token: "canary-https" };
  const at = `https://127.0.0.1:${secure.port}/app.git`;
  const strict = { allowHttp: false, allowedAddresses: ["127.0.0.1", "::1"] };

  test("of a private CA is trusted only with its certificate", async () => {
    expect((await get({ url: at, ref: "main", auth, ca: tls.cert }, contextOf({ policy: strict }))).commit).toBe(
      second,
    );
    const untrusted = await get({ url: at, ref: "main", auth }, contextOf({ policy: strict }));
    expect(untrusted.reason).toBe("sourceRefused");
    expect(untrusted.failure?.message).toContain("ca.crt");
  });

  test("of a private CA is trusted, besides public ones, if the pod's environment names its file", async () => {
    const file = join(temporaryFolder(), "private.pem");
    writeFileSync(file, tls.cert);
    const inherited = { PATH: process.env["PATH"], SSL_CERT_FILE: file };
    const context = contextOf({ policy: strict, inherited });
    expect((await get({ url: at, ref: "main", auth }, context)).commit).toBe(second);
  });

  test("by name uses the checked addresses", async () => {
    const named = `https://localhost:${secure.port}/app.git`;
    expect((await get({ url: named, ref: "main", auth, ca: tls.cert }, contextOf({ policy: strict }))).commit).toBe(
      second,
    );
  });

  test("redirects are followed with the same CA, and never to http", async () => {
    const moving = (location: string): GitServer =>
      serve({
        tls,
        intercept: (request) => {
          const { pathname, search } = new URL(request.url);
          if (!pathname.startsWith("/moved")) return undefined;
          return new Response(null, { status: 308, headers: { location: location + pathname.slice(6) + search } });
        },
      });
    const server = moving(`https://127.0.0.1:${secure.port}`);
    const open308 = moving(`http://127.0.0.1:${open.port}`);
    const source = { ref: "main", ca: tls.cert };
    const to = (port: number) => `https://127.0.0.1:${port}/moved/app.git`;
    const refused = await get({ ...source, url: to(server.port), auth }, contextOf({ policy: strict }));
    // The other server requires credentials and does not get those of the first.
    expect(refused.reason).toBe("sourceUnauthorized");
    const downgraded = await get({ ...source, url: to(open308.port) }, contextOf({ policy: strict }));
    expect(downgraded.reason).toBe("sourceInvalid");
  });
});

/** A self-signed certificate for this machine. */
function certificate(): { cert: string; key: string } {
  const folder = temporaryFolder();
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const subject = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"];
  const files = ["-nodes", "-days", "2", "-keyout", key, "-out", cert];
  execFileSync(
    "openssl",
    ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", ...files, ...subject],
    {
      stdio: "pipe",
    },
  );
  return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
}

describe("the pod's Git settings", () => {
  test("hooks, filters and helpers do not run", async () => {
    const home = mkdtempSync(join(root, "home-"));
    const marker = join(home, "ran");
    mkdirSync(join(home, "hooks"));
    execFileSync(
      "sh",
      [
        "-c",
        `printf '#!/bin/sh\\ntouch ${marker}\\n' > hooks/post-checkout && chmod +x hooks/post-checkout &&
       printf '[core]\\n\\thooksPath = ${home}/hooks\\n[filter "evil"]\\n\\tsmudge = touch ${marker}\\n[credential]\\n\\thelper = !touch ${marker}\\n' > .gitconfig`,
      ],
      { cwd: home },
    );
    const evil = createRepository(root, "evil");
    evil.commit({ ".gitattributes": "*.txt filter=evil\n", "a.txt": "x" });
    const inherited = { PATH: process.env["PATH"], HOME: home, GIT_CONFIG_GLOBAL: join(home, ".gitconfig") };
    const context = contextOf({ inherited });
    expect((await get({ url: `http://127.0.0.1:${open.port}/evil.git`, ref: "main" }, context)).reason).toBe("ok");
    expect(existsSync(marker)).toBe(false);
  });
});

describe("a commit is compared with an earlier one", () => {
  const monorepo = createRepository(root, "monorepo");
  const files = { "web/Pulumi.yaml": "1", "web/docs/a.md": "1", "api/Pulumi.yaml": "1" };
  const [one, two] = [files, { ...files, "api/Pulumi.yaml": "2", "web/docs/a.md": "2" }].map((each) =>
    monorepo.commit(each),
  ) as [string, string];
  const address = `http://127.0.0.1:${open.port}/monorepo.git`;

  /** After the commit was fetched, as `prepare` does. */
  async function compared(from: string, pathFilters: readonly string[], { context = contextOf(), to = two } = {}) {
    const compareWith = { commit: from, pathFilters: [...pathFilters] };
    const source: GitSource = { kind: "git", url: address, commit: to, shallow: true, compareWith };
    expect((await get(source, context)).reason).toBe("ok");
    return await unchangedSince(source, to, context);
  }

  const cases: readonly (readonly [filters: readonly string[], isUnchanged: boolean])[] = [
    [["web/*"], true],
    [["web/**"], false],
    [["web/**", "!web/docs/**"], true],
    [["api/**"], false],
    [[], false],
    [["!api/**", "!web/**"], true],
  ];
  test.each(cases)("with the filters %j: unchanged is %p", async (filters, isUnchanged) => {
    expect(await compared(one, filters)).toBe(isUnchanged ? one : undefined);
  });

  test("which is fetched only if the workspace did not have it before", async () => {
    const context = contextOf();
    expect((await get({ url: address, commit: one, shallow: true }, context)).reason).toBe("ok");
    expect((await get({ url: address, commit: two, shallow: true }, context)).reason).toBe("ok");
    const requests = open.requests.length;
    expect(await compared(one, ["web/*"], { context })).toBe(one);
    expect(open.requests).toHaveLength(requests);
  });

  test("and if that is unknown, nothing is claimed", async () => {
    expect(await compared("f".repeat(40), ["web/*"])).toBeUndefined();
    expect(await compared("--output=x", ["web/*"])).toBeUndefined();
    const context = contextOf();
    const compareWith = { commit: one, pathFilters: ["web/*"] };
    expect(await unchangedSince({ kind: "git", url: address, commit: two, compareWith }, two, context)).toBeUndefined();
  });

  test("and a submodule that differs counts as a change", async () => {
    monorepo.git("read-tree", two);
    monorepo.git("update-index", "--add", "--cacheinfo", `160000,${"e".repeat(40)},library`);
    const withModule = monorepo.git("commit-tree", monorepo.git("write-tree"), "-m", "with a submodule");
    monorepo.git("branch", "--force", "modules", withModule);
    expect(await compared(two, ["web/*"], { to: withModule })).toBeUndefined();
  });
});

describe("ssh", () => {
  const keys = temporaryFolder();
  const host = createKey(keys, "host");
  const user = createKey(keys, "user");
  const locked = createKey(keys, "locked", "canary passphrase");
  const other = createKey(keys, "other");

  async function sshServer(allowed = user): Promise<SshServer> {
    const server = await serveSsh(host, allowed);
    servers.push(server);
    return server;
  }

  const at = (server: SshServer) => `ssh://git@127.0.0.1:${server.port}${root}/app.git`;

  test("a key gives access to a repository whose host is known", async () => {
    const server = await sshServer();
    const auth = { kind: "ssh" as const, privateKey: user.privateKey, knownHosts: server.knownHosts };
    expect((await get({ url: at(server), ref: "main", auth })).commit).toBe(second);
    expect(server.commands.length).toBeGreaterThan(0);
  });

  test("commits are compared over SSH", async () => {
    const server = await sshServer();
    const auth = { kind: "ssh" as const, privateKey: user.privateKey, knownHosts: server.knownHosts };
    const context = contextOf();
    const source: GitSource = { kind: "git", url: at(server), commit: second, shallow: true, auth };
    expect((await get(source, context)).reason).toBe("ok");
    const compare = (pathFilters: string[]) =>
      unchangedSince({ ...source, compareWith: { commit: first, pathFilters } }, second, context);
    expect(await compare(["Pulumi.yaml"])).toBe(first);
    expect(await compare(["infra/**"])).toBeUndefined();
  });

  test("a key with a passphrase gives access", async () => {
    const server = await sshServer(locked);
    const auth = {
      kind: "ssh" as const,
      privateKey: locked.privateKey,
      passphrase: "canary passphrase",
      knownHosts: server.knownHosts,
    };
    expect((await get({ url: at(server), ref: "main", auth })).commit).toBe(second);
    const wrong = await get({ url: at(server), ref: "main", auth: { ...auth, passphrase: "wrong" } });
    expect(wrong.reason).toBe("sourceUnauthorized");
  });

  test("a host with another key is rejected", async () => {
    const server = await sshServer();
    const knownHosts = server.knownHosts.replace(host.publicKey, other.publicKey);
    const auth = { kind: "ssh" as const, privateKey: user.privateKey, knownHosts };
    const got = await get({ url: at(server), ref: "main", auth });
    expect(got.reason).toBe("sourceRefused");
    expect(got.failure?.message).toContain("known_hosts");
    expect(server.commands).toEqual([]);
  });

  test("an unknown host is rejected, and is not added to known_hosts", async () => {
    const server = await sshServer();
    const auth = { kind: "ssh" as const, privateKey: user.privateKey, knownHosts: `example.com ${host.publicKey}` };
    expect((await get({ url: at(server), ref: "main", auth })).reason).toBe("sourceRefused");
    expect((await get({ url: at(server), ref: "main", auth: { ...auth, knownHosts: " " } })).reason).toBe(
      "sourceInvalid",
    );
  });

  test("a wrong key is rejected, and an invalid one is explained", async () => {
    const server = await sshServer();
    const auth = { kind: "ssh" as const, privateKey: other.privateKey, knownHosts: server.knownHosts };
    expect((await get({ url: at(server), ref: "main", auth })).reason).toBe("sourceUnauthorized");
    const broken = { ...auth, privateKey: "not a key" };
    expect((await get({ url: at(server), ref: "main", auth: broken })).reason).toBe("sourceUnauthorized");
  });

  test("SSH without a key is an error", async () => {
    const server = await sshServer();
    expect((await get({ url: at(server), ref: "main" })).reason).toBe("sourceInvalid");
  });
});
