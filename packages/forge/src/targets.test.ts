import { expect, test } from "bun:test";

import { repositoryOf, targetOf } from "./targets.ts";
import type { ForgeTarget, ForgeType } from "./types.ts";

test.each([
  ["https://github.com/acme/web.git", { scheme: "https", host: "github.com", path: "acme/web" }],
  ["https://user:secret@Git.Example:8443/acme/web/", { scheme: "https", host: "git.example:8443", path: "acme/web" }],
  ["http://127.0.0.1:3000/acme/web", { scheme: "http", host: "127.0.0.1:3000", path: "acme/web" }],
  ["ssh://git@git.example:7999/proj/web.git", { scheme: "https", host: "git.example", path: "proj/web" }],
  ["git@github.com:acme/web.git", { scheme: "https", host: "github.com", path: "acme/web" }],
  ["gitlab.com:group/sub/web.git", { scheme: "https", host: "gitlab.com", path: "group/sub/web" }],
  ["https://github.com/", undefined],
  ["file:///srv/web.git", undefined],
  ["not a URL", undefined],
] as const)("the repository of %s", (remote, expected) => {
  expect(repositoryOf(remote)).toEqual(expected);
});

const targets: readonly (readonly [ForgeType, string, ForgeTarget["url"], string])[] = [
  ["GitHub", "git@github.com:acme/web.git", "https://api.github.com", "acme/web"],
  ["GitHub", "https://github.example/acme/web", "https://github.example/api/v3", "acme/web"],
  ["GitHub", "https://acme.ghe.com/acme/web", "https://api.acme.ghe.com", "acme/web"],
  ["GitLab", "https://gitlab.com/a/b/c.git", "https://gitlab.com/api/v4", "a/b/c"],
  ["Gitea", "http://gitea.example:3000/acme/web", "http://gitea.example:3000/api/v1", "acme/web"],
  ["Bitbucket", "git@bitbucket.org:acme/web.git", "https://api.bitbucket.org/2.0", "acme/web"],
  ["BitbucketDataCenter", "https://bitbucket.example/scm/acme/web.git", "https://bitbucket.example/rest", "acme/web"],
  [
    "BitbucketDataCenter",
    "ssh://git@bitbucket.example:7999/acme/web.git",
    "https://bitbucket.example/rest",
    "acme/web",
  ],
];
test.each(targets)("the API of %s for %s", (...row) => {
  const [type, remote, url, repository] = row;
  expect(targetOf({ type }, remote)).toEqual({ type, repository, ...(url !== undefined && { url }) });
});

test("what is set is not derived", () => {
  const settings = { type: "Gitea", url: "https://git.example/gitea/api/v1", repository: "a/b" } as const;
  expect(targetOf(settings, "https://other.example/c/d")).toEqual(settings);
  expect(targetOf({ type: "GitHub", repository: "a/b" }, undefined)?.url).toBe("https://api.github.com");
});

test("there is no target without a repository, or without a server", () => {
  expect(targetOf({ type: "GitHub" }, undefined)).toBeUndefined();
  expect(targetOf({ type: "Gitea", repository: "a/b" }, undefined)).toBeUndefined();
});

test("a URL with a million slashes is read in linear time, because a tenant may set one", () => {
  expect(repositoryOf(`https://host/acme${"/".repeat(1_000_000)}web`)?.host).toBe("host");
});
