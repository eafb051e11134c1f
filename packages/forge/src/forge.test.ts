import { describe, expect, test } from "bun:test";

import { CommitHashes } from "./commit-hashes.ts";
import { ForgeError } from "./errors.ts";
import { forge } from "./forge.ts";
import { forgeHttp } from "./http.ts";
import { standInForge, type StandInForge } from "./testing/index.ts";
import { forgeTypes, maxCommentLength, type CommitState, type ForgeType, type PullRequest } from "./types.ts";

const policy = { allowHttp: true, allowedAddresses: ["127.0.0.1"] };
const http = forgeHttp({ policy, timeoutMs: 60_000 });
const commit = "0123456789abcdef0123456789abcdef01234567";

const clientOf = ({ type, url, repository, token }: StandInForge) =>
  forge({ type, url, repository }, { kind: "token", token }, { http });

const pull = (number: number, changes: Partial<PullRequest> = {}): PullRequest => ({
  number,
  title: `Change ${number}`,
  url: `https://git.example/acme/web/pull/${number}`,
  head: { ref: `feature-${number}`, commit: `${number}`.repeat(40).slice(0, 40) },
  base: { ref: "main" },
  labels: [],
  isFork: false,
  isDraft: false,
  ...changes,
});

async function failureOf(promise: Promise<unknown>): Promise<ForgeError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof ForgeError)) throw new Error("expected a ForgeError", { cause: error });
  return error;
}

const words: Readonly<Record<ForgeType, Readonly<Record<CommitState, string>>>> = {
  GitHub: { pending: "pending", running: "pending", success: "success", failure: "failure", error: "error" },
  GitLab: { pending: "pending", running: "pending", success: "success", failure: "failed", error: "failed" },
  Gitea: { pending: "pending", running: "pending", success: "success", failure: "failure", error: "error" },
  Bitbucket: {
    pending: "INPROGRESS",
    running: "INPROGRESS",
    success: "SUCCESSFUL",
    failure: "FAILED",
    error: "FAILED",
  },
  BitbucketDataCenter: {
    pending: "INPROGRESS",
    running: "INPROGRESS",
    success: "SUCCESSFUL",
    failure: "FAILED",
    error: "FAILED",
  },
};

describe.each(forgeTypes)("%s", (type) => {
  test("sets the status of a commit", async () => {
    using server = standInForge(type);
    const client = clientOf(server);
    for (const state of ["pending", "running", "success"] as const) {
      await client.setStatus(commit, { context: "pulumi/a/b", state, description: "d", url: "https://c.example/x" });
    }
    // GitLab keeps a state that is repeated.
    const shown = type === "GitLab" ? (["pending", "success"] as const) : (["pending", "running", "success"] as const);
    expect(server.statuses).toEqual(
      shown.map((state) => ({
        commit,
        context: "pulumi/a/b",
        state: words[type][state],
        description: "d",
        url: "https://c.example/x",
      })),
    );
  });

  test("sets the status of a plan, which runs before it waits for an approval", async () => {
    using server = standInForge(type);
    const client = clientOf(server);
    for (const state of ["running", "pending", "success"] as const) {
      await client.setStatus(commit, { context: "c", state, description: state });
    }
    expect(server.statuses.at(-1)?.state).toBe(words[type].success);
  });

  test.each(["failure", "error"] as const)("reports the state %s", async (state) => {
    using server = standInForge(type);
    await clientOf(server).setStatus(commit, { context: "c", state, description: "" });
    expect(server.statuses.map((status) => status.state)).toEqual([words[type][state]]);
  });

  test("sets a status again, with a long context and description", async () => {
    using server = standInForge(type);
    const status = { context: "c".repeat(300), state: "success", description: "d".repeat(300) } as const;
    await clientOf(server).setStatus(commit, status);
    await clientOf(server).setStatus(commit, status);
    expect(server.statuses[0]?.description).toHaveLength(140);
  });

  test("lists open pull requests over several pages, up to the limit", async () => {
    using server = standInForge(type);
    const hasLabels = type !== "Bitbucket" && type !== "BitbucketDataCenter";
    server.pullRequests = [
      pull(5, { labels: hasLabels ? ["preview", "bug"] : [] }),
      pull(4, { isDraft: true }),
      pull(3),
      pull(2),
      pull(1),
    ];
    const { pullRequests } = server;
    const client = clientOf(server);
    expect(await client.openPullRequests(100)).toEqual({ pullRequests, isComplete: true });
    expect(await client.openPullRequests(5)).toEqual({ pullRequests, isComplete: true });
    expect(await client.openPullRequests(4)).toEqual({ pullRequests: pullRequests.slice(0, 4), isComplete: false });
    expect(await client.openPullRequests(3)).toEqual({ pullRequests: pullRequests.slice(0, 3), isComplete: false });
  });

  test("finds one pull request, if it is open", async () => {
    using server = standInForge(type);
    server.pullRequests = [pull(2)];
    server.closedPullRequests = [pull(1)];
    const client = clientOf(server);
    expect(await client.openPullRequest(2)).toEqual(pull(2));
    expect(await client.openPullRequest(1)).toBeUndefined();
    expect(await client.openPullRequest(3)).toBeUndefined();
  });

  test("recognizes a pull request of a fork", async () => {
    using server = standInForge(type);
    server.pullRequests = [pull(1, { isFork: true })];
    const { head } = pull(1);
    expect((await clientOf(server).openPullRequests(1)).pullRequests).toMatchObject([{ isFork: true, head }]);
  });

  test("creates a comment and then replaces its text, with and without its ID", async () => {
    using server = standInForge(type);
    server.pullRequests = [pull(7)];
    server.comments.set(7, [
      { id: 1, body: "first", version: 0 },
      { id: 2, body: "second", version: 0 },
      { id: 3, body: "third", version: 0 },
    ]);
    const client = clientOf(server);
    const known = await client.putComment(7, { marker: "m:1", body: "one" });
    expect(await client.putComment(7, { marker: "m:1", body: "two", known })).toBe(known);
    expect(server.comments.get(7)?.at(-1)?.body).toStartWith("two\n\n");
    expect(await client.putComment(7, { marker: "m:1", body: "three" })).toBe(known);
    expect(server.comments.get(7)?.map(({ body }) => body.split("\n")[0])).toEqual([
      "first",
      "second",
      "third",
      "three",
    ]);
  });

  test("creates the comment again if it was deleted", async () => {
    using server = standInForge(type);
    server.pullRequests = [pull(7)];
    const client = clientOf(server);
    const known = await client.putComment(7, { marker: "m:1", body: "one" });
    server.comments.clear();
    expect(await client.putComment(7, { marker: "m:1", body: "two", known })).not.toBe(known);
    expect(server.comments.get(7)).toHaveLength(1);
  });

  test("creates a comment of its own if the known one belongs to another user, and finds it later", async () => {
    using server = standInForge(type);
    server.pullRequests = [pull(7)];
    const client = clientOf(server);
    const former = await client.putComment(7, { marker: "m:1", body: "one" });
    server.foreignComments.add(Number(former));
    const own = await client.putComment(7, { marker: "m:1", body: "two", known: former });
    expect(own).not.toBe(former);
    expect(await client.putComment(7, { marker: "m:1", body: "three", known: own })).toBe(own);
    expect(await client.putComment(7, { marker: "m:1", body: "four" })).toBe(own);
    expect(server.comments.get(7)?.map(({ body }) => body.split("\n")[0])).toEqual(["one", "four"]);
  });

  test("reports a token that may not write comments", async () => {
    using server = standInForge(type);
    server.pullRequests = [pull(7)];
    const client = clientOf(server);
    const known = await client.putComment(7, { marker: "m:1", body: "one" });
    server.token = "another";
    const error = await failureOf(client.putComment(7, { marker: "m:1", body: "two", known }));
    expect(error.kind).toBe("unauthorized");
  });

  test("accepts the longest comment", async () => {
    using server = standInForge(type);
    server.pullRequests = [pull(7)];
    const body = "x".repeat(maxCommentLength[type]);
    expect(await clientOf(server).putComment(7, { marker: "m:1", body })).not.toBe("");
  });

  test("reports wrong credentials, without them and without the server's text", async () => {
    using server = standInForge(type);
    const client = forge(server, { kind: "token", token: "canary-secret" }, { http });
    const error = await failureOf(client.openPullRequests(1));
    expect(error.kind).toBe("unauthorized");
    expect(error.message).toContain("(status 401)");
    expect(error.message).not.toContain("canary");
    expect(error.message).not.toContain("Bad");
  });

  test("reports a commit that does not exist", async () => {
    using server = standInForge(type);
    server.missingCommits.add(commit);
    const error = await failureOf(
      clientOf(server).setStatus(commit, { context: "c", state: "success", description: "" }),
    );
    expect(error.kind).toBe(type === "GitHub" || type === "Gitea" ? "invalid" : "notFound");
  });
});

test("the fork of a pull request at Bitbucket Cloud is known, because its commits cannot be fetched from the target", async () => {
  using server = standInForge("Bitbucket");
  server.pullRequests = [pull(2, { isFork: true }), pull(1)];
  const { pullRequests } = await clientOf(server).openPullRequests(2);
  expect(pullRequests.map(({ head }) => head.repository)).toEqual(["someone/fork", undefined]);
});

test("a deleted source at Bitbucket Cloud leaves a short hash, and does not affect the others", async () => {
  using server = standInForge("Bitbucket");
  server.pullRequests = [pull(3, { isFork: true }), pull(2), pull(1)];
  for (const { head } of [pull(3), pull(2)]) server.missingCommits.add(head.commit);
  const { pullRequests } = await clientOf(server).openPullRequests(9);
  expect(pullRequests.map(({ head }) => head.commit)).toEqual(["3".repeat(12), "2".repeat(12), "1".repeat(40)]);
});

const answers: readonly (readonly [string, Response, Partial<ForgeError>])[] = [
  [
    "429 with Retry-After",
    new Response("", { status: 429, headers: { "retry-after": "7" } }),
    { kind: "rateLimited", retryAfterMs: 7000 },
  ],
  [
    "429 with an absurd time",
    new Response("", { status: 429, headers: { "retry-after": "9".repeat(400) } }),
    { kind: "rateLimited", retryAfterMs: 3_600_000 },
  ],
  ["429", new Response("", { status: 429 }), { kind: "rateLimited" }],
  [
    "GitHub's secondary limit",
    new Response("", { status: 403, headers: { "retry-after": "60" } }),
    { kind: "rateLimited", retryAfterMs: 60_000 },
  ],
  [
    "GitHub's primary limit",
    new Response("", {
      status: 403,
      headers: {
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": "1893456030",
        date: "Tue, 01 Jan 2030 00:00:00 GMT",
      },
    }),
    { kind: "rateLimited", retryAfterMs: 30_000 },
  ],
  ["a missing permission", new Response("", { status: 403 }), { kind: "unauthorized" }],
  ["a missing repository", new Response("", { status: 404 }), { kind: "notFound" }],
  ["invalid content", new Response("", { status: 422 }), { kind: "invalid" }],
  [
    "maintenance",
    new Response("", { status: 503, headers: { "retry-after": "2" } }),
    { kind: "unavailable", retryAfterMs: 2000 },
  ],
  ["a page that is not JSON", new Response("<html>"), { kind: "unavailable" }],
  [
    "a link to a next page that is not a URL",
    new Response("[]", { headers: { link: '<https://>; rel="next"' } }),
    { kind: "unavailable" },
  ],
  [
    "a redirect to another host",
    new Response("", { status: 302, headers: { location: "http://127.0.0.2/" } }),
    { kind: "invalid" },
  ],
];
test.each(answers)("an answer is classified: %s", async (_, answer, expected) => {
  using server = standInForge("GitHub");
  server.answers.push(() => answer);
  expect(await failureOf(clientOf(server).openPullRequests(1))).toMatchObject(expected);
});

test("a list with a million empty entries is read", async () => {
  using server = standInForge("GitHub");
  server.answers.push(() => new Response(`[${"{},".repeat(1_000_000)}{}]`));
  expect((await clientOf(server).openPullRequests(3)).pullRequests).toHaveLength(3);
});

const pages = (server: StandInForge, text: string): void => {
  const next = { link: `<${server.url}/repos/acme/web/pulls?page=2>; rel="next"` };
  const answer = (): Response => {
    server.answers.push(answer);
    return new Response(text, { headers: next });
  };
  server.answers.push(answer);
};

test("a list without end is read only up to a size, and is not complete", async () => {
  using server = standInForge("GitHub");
  pages(server, JSON.stringify([{ body: "x".repeat(6 * 1024 * 1024) }]));
  const { pullRequests, isComplete } = await clientOf(server).openPullRequests(300);
  expect([pullRequests.length, isComplete]).toEqual([3, false]);
});

test("a comment that is not in the part of a long list that is read is written again", async () => {
  using server = standInForge("GitHub");
  pages(server, JSON.stringify([{ id: 1, body: "x".repeat(6 * 1024 * 1024) }]));
  await clientOf(server).putComment(7, { marker: "m", body: "text" });
  expect(server.calls.map(({ method }) => method)).toEqual(["GET", "GET", "GET", "POST"]);
});

/** More than the operator reads of one response. */
const tooLarge = (): Response => new Response("x".repeat(9 * 1024 * 1024));

describe.each(forgeTypes)("pages of %s that are too large", (type) => {
  test("are read again in smaller pieces", async () => {
    using server = standInForge(type);
    server.pullRequests = [pull(5), pull(4), pull(3)];
    server.answers.push(tooLarge);
    const { pullRequests } = server;
    expect(await clientOf(server).openPullRequests(100)).toEqual({ pullRequests, isComplete: true });
    const sizes = server.calls.flatMap(({ path }) => /\b(?:per_page|pagelen|limit)=(\d+)/.exec(path)?.[1] ?? []);
    expect(sizes).toEqual([
      type === "GitHub" || type === "GitLab" || type === "BitbucketDataCenter" ? "100" : "50",
      "10",
      "10",
    ]);
  });

  test("end the list if the smaller ones are too large, too", async () => {
    using server = standInForge(type);
    server.pullRequests = [pull(7)];
    server.answers.push(tooLarge, tooLarge);
    expect(await clientOf(server).openPullRequests(100)).toEqual({ pullRequests: [], isComplete: false });
    server.answers.push(tooLarge, tooLarge);
    await clientOf(server).putComment(7, { marker: "m", body: "text" });
    expect(server.comments.get(7)).toHaveLength(1);
  });
});

test("a comment that is not among the first thousands is written again", async () => {
  using server = standInForge("GitHub");
  pages(server, JSON.stringify(Array.from({ length: 4000 }, () => ({ id: 1, body: "" }))));
  await clientOf(server).putComment(7, { marker: "m", body: "text" });
  expect(server.calls.map(({ method }) => method)).toEqual(["GET", "GET", "POST"]);
});

test.each(forgeTypes)("texts of %s that are too long to be names are not kept", async (type) => {
  using server = standInForge(type);
  const long = "x".repeat(100_000);
  const labels = type.startsWith("Bitbucket") ? [] : [long, ...Array.from({ length: 1000 }, () => "label")];
  server.pullRequests = [
    pull(1, { title: long, url: `https://host/${long}`, head: { ...pull(1).head, ref: long }, labels }),
  ];
  const { pullRequests } = await clientOf(server).openPullRequests(1);
  expect(pullRequests[0]).toMatchObject({ title: "", url: "", head: { ref: "" } });
  expect(JSON.stringify(pullRequests).length).toBeLessThan(2000);
});

test("an ID that no forge uses is not kept", async () => {
  using server = standInForge("GitHub");
  server.answers.push(
    () => Response.json([]),
    () => Response.json({ id: "x".repeat(129) }),
  );
  expect(await clientOf(server).putComment(7, { marker: "m", body: "text" })).toBe("");
  server.answers.push(
    () => Response.json([{ id: "x".repeat(129), body: "<!-- m -->" }]),
    () => Response.json({}),
  );
  expect(await clientOf(server).putComment(7, { marker: "m", body: "text" })).toBe("");
});

test.each(forgeTypes)("a comment at %s whose ID was not kept is found by its marker", async (type) => {
  using server = standInForge(type);
  server.pullRequests = [pull(7)];
  const id = await clientOf(server).putComment(7, { marker: "m", body: "first" });
  server.calls.length = 0;
  expect(await clientOf(server).putComment(7, { marker: "m", body: "second", known: "" })).toBe(id);
  expect(server.calls.map(({ path }) => path).filter((path) => path.endsWith("/"))).toEqual([]);
});

test("a comment whose ID ends with half of a character is not found", async () => {
  using server = standInForge("GitHub");
  server.pullRequests = [pull(7)];
  server.answers.push(() => new Response(String.raw`[{"id":"1\uD83D","body":"<!-- m -->"}]`));
  expect(await clientOf(server).putComment(7, { marker: "m", body: "text" })).not.toBe("");
});

test("a renamed repository is followed within the API", async () => {
  using server = standInForge("GitHub");
  const location = `${server.url}/repos/acme/web/statuses/${commit}`;
  server.answers.push(() => new Response("", { status: 307, headers: { location } }));
  await clientOf(server).setStatus(commit, { context: "c", state: "success", description: "" });
  expect(server.statuses).toHaveLength(1);
});

test("a forge that does not respond is unavailable", async () => {
  using server = standInForge("GitHub");
  const { promise, resolve } = Promise.withResolvers<Response>();
  server.answers.push(() => promise);
  const impatient = { http: forgeHttp({ policy, timeoutMs: 50 }) };
  const client = forge(server, { kind: "token", token: server.token }, impatient);
  const error = await failureOf(client.openPullRequests(1));
  resolve(new Response(""));
  expect(error).toMatchObject({ kind: "unavailable", message: expect.stringContaining("did not respond") as string });
});

test("a forbidden address is refused", async () => {
  const client = forge(
    { type: "Gitea", url: "https://169.254.169.254/api/v1", repository: "a/b" },
    { kind: "token", token: "t" },
    { http },
  );
  expect((await failureOf(client.openPullRequests(1))).kind).toBe("invalid");
});

const noRepositories: readonly (readonly [string, string])[] = [
  ["without an owner", "web"],
  ["with two spaces", "acme/my  web"],
  ["with a space at the end", "acme/web "],
  ["with a folder of a path", "acme/.."],
  ["with a part of 256 characters", `acme/${"a".repeat(256)}`],
];
test.each(noRepositories)("a repository %s is refused", (...row) => {
  const [, repository] = row;
  const target = { type: "Gitea", url: "https://git.example/api/v1", repository } as const;
  expect(() => forge(target, { kind: "token", token: "t" }, { http })).toThrow("is not a valid Gitea repository");
});

test("a repository with a character that is not allowed at its end is refused in linear time", () => {
  // With nested quantifiers, each takes a second: then the engine gives up.
  for (let length = 200; length < 220; length += 1) {
    const target = {
      type: "Gitea",
      url: "https://git.example/api/v1",
      repository: `acme/${"a".repeat(length)}+`,
    } as const;
    expect(() => forge(target, { kind: "token", token: "t" }, { http })).toThrow("is not a valid Gitea repository");
  }
});

test.each(["acme/web", "a.b~c-d_e/my web app", `acme/${"a".repeat(255)}`])(
  "the repository %s is used",
  (repository) => {
    const target = { type: "Gitea", url: "https://git.example/api/v1", repository } as const;
    expect(() => forge(target, { kind: "token", token: "t" }, { http })).not.toThrow();
  },
);

test("a forge that names its pages by another address is read at its own", async () => {
  using server = standInForge("Gitea");
  server.pullRequests = [pull(2), pull(1)];
  const next = "https://git.example/api/v1/repos/acme/web/pulls?page=2";
  server.answers.push(() => Response.json([], { headers: { link: `<${next}>; rel="next"` } }));
  server.pageSize = 1;
  const { pullRequests } = await clientOf(server).openPullRequests(9);
  expect(pullRequests.map(({ number }) => number)).toEqual([1]);
});

test.each([
  ["on another host", (other: string) => other],
  ["with the name of another host as its path", (other: string) => `https://git.example//${new URL(other).host}`],
])("a next page %s does not get the token", async (_, originOf) => {
  using server = standInForge("GitHub");
  using other = standInForge("GitHub");
  const next = `${originOf(new URL(other.url).origin)}/repos/a/b/pulls`;
  server.answers.push(() => Response.json([], { headers: { link: `<${next}>; rel="next"` } }));
  expect((await failureOf(clientOf(server).openPullRequests(1))).kind).toBe("notFound");
  expect(server.calls).toHaveLength(2);
  expect(other.calls).toEqual([]);
});

test("a user and a password are sent as basic authentication", async () => {
  using server = standInForge("Bitbucket");
  const client = forge(server, { kind: "basic", username: "me", password: "secret" }, { http });
  await failureOf(client.openPullRequests(1));
  expect(server.calls[0]?.authorization).toBe(`Basic ${Buffer.from("me:secret").toString("base64")}`);
});

test.each(["", "name", "a/../b", "a/b/c", "a/b?x=1", "a//b", "./b"])("the repository %p is not valid", (repository) => {
  const target = { type: "GitHub", url: "https://api.github.com", repository } as const;
  expect(() => forge(target, { kind: "token", token: "t" }, { http })).toThrow(ForgeError);
});

test("the full hashes of commits at Bitbucket Cloud are requested once", async () => {
  using server = standInForge("Bitbucket");
  server.pageSize = 50;
  server.pullRequests = [pull(3, { isFork: true }), pull(2), pull(1)];
  const hashes = new CommitHashes();
  const { type, url, repository, token } = server;
  const list = async () =>
    await forge({ type, url, repository }, { kind: "token", token }, { http, hashes }).openPullRequests(50);
  const first = await list();
  expect(server.calls).toHaveLength(4);
  expect(await list()).toEqual(first);
  expect(server.calls).toHaveLength(5);
  server.pullRequests = [pull(4), pull(3, { isFork: true }), pull(2)];
  const { pullRequests } = await list();
  expect(pullRequests.map(({ head }) => head.commit)).toEqual([4, 3, 2].map((digit) => `${digit}`.repeat(40)));
  expect(server.calls).toHaveLength(7);
});

test("a commit that Bitbucket Cloud did not have is requested again", async () => {
  using server = standInForge("Bitbucket");
  server.pullRequests = [pull(1)];
  const hashes = new CommitHashes();
  const { type, url, repository, token } = server;
  const head = async () => {
    const client = forge({ type, url, repository }, { kind: "token", token }, { http, hashes });
    return (await client.openPullRequests(1)).pullRequests[0]?.head.commit;
  };
  server.missingCommits.add("1".repeat(40));
  expect(await head()).toBe("1".repeat(12));
  server.missingCommits.clear();
  expect(await head()).toBe("1".repeat(40));
});
