/** Payloads after the public documentation of each forge, reduced to a few fields. */
import { describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";

import type { ReceiverType } from "@pko/api";

import { forges } from "./index.ts";
import type { Hook, HookContent } from "./hook.ts";

const secret = "It's a Secret to Everybody";
const hmac = (body: string, key = secret): string => createHmac("sha256", key).update(body).digest("hex");
const hookOf = (body: string, headers: Readonly<Record<string, string>>): Hook => ({
  header: (name) => headers[name],
  body: Buffer.from(body),
});

describe("GitHub's documented example", () => {
  test("of a signature is verified", () => {
    const signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    expect(
      forges.GitHub.verify(hookOf("Hello, World!", { "x-hub-signature-256": signature }), Buffer.from(secret)),
    ).toBe(true);
  });
});

const authorizations: Readonly<Record<ReceiverType, (body: string, key: string) => Record<string, string>>> = {
  GitHub: (body, key) => ({ "x-hub-signature-256": `sha256=${hmac(body, key)}` }),
  GitLab: (_, key) => ({ "x-gitlab-token": key }),
  Gitea: (body, key) => ({ "x-gitea-signature": hmac(body, key) }),
  Bitbucket: (body, key) => ({ "x-hub-signature": `sha256=${hmac(body, key)}` }),
  BitbucketDataCenter: (body, key) => ({ "x-hub-signature": `sha256=${hmac(body, key)}` }),
  AzureDevOps: (_, key) => ({ authorization: `Basic ${btoa(`hooks:${key}`)}` }),
  Generic: (body, key) => ({ "x-signature": `sha256=${hmac(body, key)}` }),
};

describe.each(Object.entries(authorizations))("a hook of type %s", (type, authorize) => {
  const forge = forges[type as ReceiverType];
  const body = '{"ref":"refs/heads/main"}';
  const verify = (headers: Readonly<Record<string, string>>, text = body): boolean =>
    forge.verify(hookOf(text, headers), Buffer.from(secret));

  test("is verified by the secret", () => expect(verify(authorize(body, secret))).toBe(true));
  test("is rejected with another secret", () => expect(verify(authorize(body, `${secret}!`))).toBe(false));
  test("is rejected without any", () => expect(verify({})).toBe(false));
  test("is rejected with the proof of another type", () => {
    const others = Object.entries(authorizations).filter(([name]) => !name.startsWith(type) && !type.startsWith(name));
    for (const [, other] of others) expect(verify(other(body, secret))).toBe(false);
  });
  test("is rejected with an empty or cut proof", () => {
    for (const [name, value] of Object.entries(authorize(body, secret))) {
      expect(verify({ [name]: "" })).toBe(false);
      expect(verify({ [name]: value.slice(0, -4) })).toBe(false);
    }
  });
  if (type !== "GitLab" && type !== "AzureDevOps") {
    test("is rejected if a byte of the body has changed", () => {
      expect(verify(authorize(body, secret), `${body} `)).toBe(false);
    });
  }
  test("is never an error, whatever it contains", () => {
    const events = { "x-github-event": "push", "x-gitea-event": "push", "x-event-key": "repo:push" };
    const bodies = [
      "",
      "{",
      "null",
      "[]",
      "1",
      '"x"',
      '{"repository":null}',
      '{"push":{"changes":{}}}',
      "[".repeat(100_000),
    ];
    for (const text of [...bodies, '{"__proto__":{"repository":1}}', '{"object_kind":"push","project":[]}']) {
      const { kind } = forge.parse(hookOf(text, events));
      expect(["other", "malformed"]).toContain(kind);
    }
  });
});

test("a binary secret is a key as it is", () => {
  const key = Buffer.from([0xff, 0xfe, 0x80, 0x00]);
  const signature = createHmac("sha256", key).update("{}").digest("hex");
  expect(forges.Generic.verify(hookOf("{}", { "x-signature": `sha256=${signature}` }), key)).toBe(true);
});

test("Forgejo's own header is accepted, too", () => {
  expect(forges.Gitea.verify(hookOf("{}", { "x-forgejo-signature": hmac("{}") }), Buffer.from(secret))).toBe(true);
});

const push = (repositories: readonly string[], ...refs: readonly string[]): HookContent => ({
  kind: "push",
  repositories,
  refs,
});
const pullRequest = (...repositories: readonly string[]): HookContent => ({ kind: "pullRequest", repositories });
const githubRepository = {
  clone_url: "https://github.com/acme/web.git",
  ssh_url: "git@github.com:acme/web.git",
  html_url: "https://github.com/acme/web",
};
const githubUrls = Object.values(githubRepository);
const gitlabProject = {
  git_http_url: "https://gitlab.example/acme/web.git",
  git_ssh_url: "git@gitlab.example:acme/web.git",
  web_url: "https://gitlab.example/acme/web",
};
const gitlabUrls = Object.values(gitlabProject);
const cloudRepository = { full_name: "acme/web", links: { html: { href: "https://bitbucket.org/acme/web" } } };
const dataCenterRepository = { slug: "web", project: { key: "ACME" } };
const dataCenterLinks = { clone: [{ href: "https://git.example/scm/acme/web.git", name: "http" }] };
const azurePush = {
  eventType: "git.push",
  resource: {
    repository: { remoteUrl: "https://dev.azure.com/acme/shop/_git/web" },
    refUpdates: [{ name: "refs/heads/main" }, { name: "refs/tags/v1" }],
  },
};

const contents: readonly (readonly [string, ReceiverType, Record<string, string>, object, HookContent])[] = [
  [
    "a push",
    "GitHub",
    { "x-github-event": "push" },
    { ref: "refs/heads/main", repository: githubRepository },
    push(githubUrls, "refs/heads/main"),
  ],
  [
    "a new tag",
    "GitHub",
    { "x-github-event": "create" },
    { ref: "v1", ref_type: "tag", repository: githubRepository },
    push(githubUrls, "refs/tags/v1"),
  ],
  ["a ping", "GitHub", { "x-github-event": "ping" }, { zen: "Design for failure." }, { kind: "ping" }],
  ["a star", "GitHub", { "x-github-event": "star" }, { repository: githubRepository }, { kind: "other" }],
  [
    "a push without a repository",
    "GitHub",
    { "x-github-event": "push" },
    { ref: "refs/heads/main" },
    { kind: "malformed" },
  ],
  [
    "a push",
    "Gitea",
    { "x-gitea-event": "push" },
    { ref: "refs/heads/main", repository: githubRepository },
    push(githubUrls, "refs/heads/main"),
  ],
  [
    "a pull request",
    "Gitea",
    { "x-gitea-event": "pull_request" },
    { action: "synchronized", number: 7, repository: githubRepository },
    pullRequest(...githubUrls),
  ],
  [
    "a pull request",
    "GitHub",
    { "x-github-event": "pull_request" },
    { action: "opened", number: 7, repository: githubRepository },
    pullRequest(...githubUrls),
  ],
  [
    "a pull request without a repository",
    "GitHub",
    { "x-github-event": "pull_request" },
    { action: "opened" },
    { kind: "malformed" },
  ],
  [
    "a merge request",
    "GitLab",
    {},
    { object_kind: "merge_request", project: gitlabProject },
    pullRequest(...gitlabUrls),
  ],
  [
    "a pull request",
    "Bitbucket",
    { "x-event-key": "pullrequest:updated" },
    { repository: cloudRepository },
    pullRequest("https://bitbucket.org/acme/web"),
  ],
  [
    "a pull request",
    "BitbucketDataCenter",
    { "x-event-key": "pr:from_ref_updated" },
    { pullRequest: { toRef: { repository: { ...dataCenterRepository, links: dataCenterLinks } } } },
    pullRequest("https://git.example/scm/acme/web.git"),
  ],
  ["a comment", "BitbucketDataCenter", { "x-event-key": "pr:comment:added" }, {}, { kind: "other" }],
  [
    "a new branch",
    "Gitea",
    { "x-gitea-event": "create" },
    { ref: "side", ref_type: "branch", repository: githubRepository },
    push(githubUrls, "refs/heads/side"),
  ],
  [
    "a push of Forgejo",
    "Gitea",
    { "x-forgejo-event": "push" },
    { ref: "refs/heads/main", repository: githubRepository },
    push(githubUrls, "refs/heads/main"),
  ],
  [
    "a push that claims to be GitHub's",
    "Gitea",
    { "x-github-event": "push" },
    { ref: "refs/heads/main", repository: githubRepository },
    { kind: "other" },
  ],
  [
    "a push",
    "GitLab",
    {},
    { object_kind: "push", ref: "refs/heads/main", project: gitlabProject },
    push(gitlabUrls, "refs/heads/main"),
  ],
  [
    "a tag",
    "GitLab",
    {},
    { object_kind: "tag_push", ref: "refs/tags/v1", project: gitlabProject },
    push(gitlabUrls, "refs/tags/v1"),
  ],
  [
    "a system hook",
    "GitLab",
    {},
    { event_name: "repository_update", refs: ["refs/heads/main"], project: gitlabProject },
    push(gitlabUrls, "refs/heads/main"),
  ],
  ["an issue", "GitLab", {}, { object_kind: "issue", project: gitlabProject }, { kind: "other" }],
  [
    "a push with a deleted branch and a tag",
    "Bitbucket",
    { "x-event-key": "repo:push" },
    {
      repository: cloudRepository,
      push: {
        changes: [
          { new: { type: "branch", name: "main" }, old: null },
          { new: null, old: { type: "branch", name: "gone" } },
          { new: { type: "tag", name: "v1" } },
        ],
      },
    },
    push(["https://bitbucket.org/acme/web"], "refs/heads/main", "refs/heads/gone", "refs/tags/v1"),
  ],
  ["a comment", "Bitbucket", { "x-event-key": "pullrequest:comment_created" }, {}, { kind: "other" }],
  [
    "a push",
    "BitbucketDataCenter",
    { "x-event-key": "repo:refs_changed" },
    { repository: { ...dataCenterRepository, links: dataCenterLinks }, changes: [{ ref: { id: "refs/heads/main" } }] },
    push(["https://git.example/scm/acme/web.git"], "refs/heads/main"),
  ],
  [
    "a push of a version that reports no URLs",
    "BitbucketDataCenter",
    { "x-event-key": "repo:refs_changed" },
    { repository: dataCenterRepository, changes: [{ ref: { id: "refs/heads/main" } }] },
    push(["ACME/web"], "refs/heads/main"),
  ],
  ["a ping", "BitbucketDataCenter", { "x-event-key": "diagnostics:ping" }, { test: true }, { kind: "ping" }],
  [
    "a push",
    "AzureDevOps",
    {},
    azurePush,
    push(["https://dev.azure.com/acme/shop/_git/web"], "refs/heads/main", "refs/tags/v1"),
  ],
  ["a build", "AzureDevOps", {}, { eventType: "build.complete" }, { kind: "other" }],
  [
    "a push",
    "Generic",
    {},
    { repository: "https://git.example/web", ref: "refs/heads/main" },
    push(["https://git.example/web"], "refs/heads/main"),
  ],
  ["a push to any ref", "Generic", {}, { repository: "https://git.example/web" }, push(["https://git.example/web"])],
  ["a short ref", "Generic", {}, { repository: "https://git.example/web", ref: "main" }, { kind: "malformed" }],
  [
    "a ref that is longer than any",
    "Generic",
    {},
    { repository: "https://git.example/web", ref: `refs/heads/${"a".repeat(1014)}` },
    { kind: "malformed" },
  ],
  ["nothing", "Generic", {}, {}, { kind: "malformed" }],
];
test.each(contents)("%s of %s is understood", (...row) => {
  const [, type, headers, body, expected] = row;
  expect(forges[type].parse(hookOf(JSON.stringify(body), headers))).toEqual(expected);
});

test("a payload in a form is understood", () => {
  const payload = JSON.stringify({ ref: "refs/heads/main", repository: githubRepository });
  const headers = { "x-github-event": "push", "content-type": "application/x-www-form-urlencoded" };
  const body = new URLSearchParams({ payload }).toString();
  expect(forges.GitHub.parse(hookOf(body, headers))).toEqual(push(githubUrls, "refs/heads/main"));
});

test("a push with very many refs may have changed any", () => {
  const refUpdates = Array.from({ length: 2000 }, (_, index) => ({ name: `refs/tags/${index}` }));
  const body = { ...azurePush, resource: { ...azurePush.resource, refUpdates } };
  expect(forges.AzureDevOps.parse(hookOf(JSON.stringify(body), {}))).toMatchObject({ kind: "push", refs: [] });
});

test("of the refs of a push, those that are longer than any are ignored", () => {
  const [longest, longer] = [`refs/heads/${"a".repeat(1013)}`, `refs/heads/${"a".repeat(1014)}`];
  const refUpdates = [longest, longer].map((name) => ({ name }));
  const body = { ...azurePush, resource: { ...azurePush.resource, refUpdates } };
  expect(forges.AzureDevOps.parse(hookOf(JSON.stringify(body), {}))).toMatchObject({ kind: "push", refs: [longest] });
});
