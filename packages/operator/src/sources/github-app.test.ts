import { expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { manualClock } from "@pko/kube";

import { githubAppTokens } from "./github-app.ts";

const { privateKey } = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});
const app = { repository: "https://git.example.com/a.git", appId: "1", installationId: "7", privateKey };
const policy = { allowHttp: true, allowedAddresses: ["127.0.0.1"] };

test("the connection to a server that responds endlessly is closed", async () => {
  const hungUp = Promise.withResolvers<void>();
  let sent = 0;
  const chunk = new Uint8Array(16 * 1024).fill(0x20);
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () =>
      new Response(
        new ReadableStream({
          async pull(controller) {
            await Bun.sleep(1);
            sent += chunk.length;
            controller.enqueue(chunk);
          },
          cancel: () => hungUp.resolve(),
        }),
      ),
  });
  try {
    const tokens = githubAppTokens({ policy, apiOf: () => server.url.origin });
    expect(await tokens.tokenFor(app)).toEqual({ ok: false, message: "GitHub responded with more than 65536 bytes" });
    await hungUp.promise;
    // The kernel buffers more than is read.
    expect(sent).toBeLessThan(16 * 1024 * 1024);
  } finally {
    await server.stop(true);
  }
}, 30_000);

/** GitHub at 127.0.0.1, and at 127.0.0.2 a service that must not see the App's JWT. */
function servers() {
  const stolen: (string | null)[] = [];
  const github = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => Response.json({ token: "installation" }) });
  const port = github.port ?? 0;
  const other = Bun.serve({
    hostname: "127.0.0.2",
    port,
    fetch: ({ headers }) => {
      stolen.push(headers.get("authorization"));
      return Response.json({ token: "forged" });
    },
  });
  return {
    port,
    stolen,
    [Symbol.dispose]() {
      void github.stop(true);
      void other.stop(true);
    },
  };
}

test.each([
  ["the first answer is checked and used", ["127.0.0.1", "127.0.0.2"], { ok: true, token: "installation" }],
  ["a forbidden address is refused", ["127.0.0.2"], { ok: false }],
])("a name server that changes its answer: %s", async (_, answers, expected) => {
  using there = servers();
  let lookups = 0;
  const tokens = githubAppTokens({
    policy,
    apiOf: () => `http://github.example:${there.port}/api/v3`,
    lookup: async () => [answers[lookups++] ?? ""],
  });
  expect(await tokens.tokenFor(app)).toMatchObject(expected);
  expect([lookups, there.stolen]).toEqual([1, []]);
});

test.each([
  [401, false],
  [404, false],
  [422, false],
  [429, true],
  [503, true],
])("an answer with the status %d is temporary: %p", async (status, isTemporary) => {
  using github = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response(null, { status }) });
  const token = await githubAppTokens({ policy, apiOf: () => github.url.origin }).tokenFor(app);
  expect(!token.ok && (token.isTemporary ?? false)).toBe(isTemporary);
});

test("a server that does not respond is a temporary problem", async () => {
  const github = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
  const { origin } = github.url;
  await github.stop(true);
  expect(await githubAppTokens({ policy, apiOf: () => origin }).tokenFor(app)).toMatchObject({ isTemporary: true });
});

/** Each token is a new one. Tokens of this server do not expire. */
function issuing(tokenOf: (count: number) => string = String) {
  let count = 0;
  const expires_at = "9999-01-01T00:00:00Z";
  const fetch = (): Response => Response.json({ token: tokenOf(++count), expires_at });
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch });
  const clock = manualClock();
  const tokens = githubAppTokens({ policy, clock, apiOf: () => server.url.origin, maxTokens: 2 });
  const tokenFor = async (installationId = "7") => {
    const result = await tokens.tokenFor({ ...app, installationId });
    return result.ok ? result.token : result.message;
  };
  return { clock, tokenFor, [Symbol.dispose]: () => void server.stop(true) };
}

test("a token is replaced after an hour at the latest, whatever the server says", async () => {
  using github = issuing();
  const { clock, tokenFor } = github;
  expect([await tokenFor(), await tokenFor()]).toEqual(["1", "1"]);
  await clock.advance(60 * 60_000);
  expect([await tokenFor(), await tokenFor()]).toEqual(["2", "2"]);
});

test("a limited number of tokens is kept, and the oldest are forgotten first", async () => {
  using github = issuing();
  const { tokenFor } = github;
  for (const id of ["1", "2", "3"]) await tokenFor(id);
  expect([await tokenFor("2"), await tokenFor("3"), await tokenFor("1")]).toEqual(["2", "3", "4"]);
});

test("a token that is longer than any of GitHub is rejected", async () => {
  using github = issuing((count) => "x".repeat(4095 + count));
  const { tokenFor } = github;
  expect(await tokenFor("1")).toHaveLength(4096);
  expect(await tokenFor("2")).toBe("GitHub responded with a token that is too long");
});

test.each(["https://host:99999", "not a URL", ""])("the API at %p is reported as invalid", async (api) => {
  const token = await githubAppTokens({ policy }).tokenFor({ ...app, api });
  expect(token).toEqual({ ok: false, message: "the URL of the API is not valid" });
});

test.each(["a\nb", "a b", ""])("the token %p that a server issues is not used", async (token) => {
  using server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => Response.json({ token }) });
  const tokens = githubAppTokens({ policy, apiOf: () => server.url.origin });
  expect(await tokens.tokenFor(app)).toEqual({ ok: false, message: "GitHub responded without a valid token" });
});

test.each([
  ["https://github.com/acme/web", "api.github.com"],
  ["https://acme.ghe.com/acme/web", "api.acme.ghe.com"],
  ["https://github.example/acme/web", "github.example"],
])("the token for %s is requested from %s", async (repository, host) => {
  const hosts: string[] = [];
  const lookup = async (name: string): Promise<string[]> => {
    hosts.push(name);
    return [];
  };
  await githubAppTokens({ policy, lookup }).tokenFor({ ...app, repository });
  expect(hosts).toEqual([host]);
});

test("those that need the same token at the same time share an exchange, which none of them can abort for the others", async () => {
  const answer = Promise.withResolvers<void>();
  let exchanges = 0;
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async () => {
      exchanges += 1;
      await answer.promise;
      return Response.json({ token: "t" });
    },
  });
  const tokens = githubAppTokens({ policy, apiOf: () => server.url.origin });
  const impatient = new AbortController();
  const aborted = tokens.tokenFor(app, impatient.signal).catch((error: unknown) => error);
  const patient = [tokens.tokenFor(app, new AbortController().signal), tokens.tokenFor(app)];
  impatient.abort(new Error("no time"));
  expect(await aborted).toEqual(new Error("no time"));
  answer.resolve();
  const token = { ok: true, token: "t" } as const;
  expect(await Promise.all(patient)).toEqual([token, token]);
  expect(exchanges).toBe(1);
});

test("an exchange that failed is repeated", async () => {
  let status = 503;
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => Response.json({ token: "t" }, { status }),
  });
  const tokens = githubAppTokens({ policy, apiOf: () => server.url.origin });
  expect(await tokens.tokenFor(app)).toMatchObject({ ok: false });
  status = 201;
  expect(await tokens.tokenFor(app)).toEqual({ ok: true, token: "t" });
});
