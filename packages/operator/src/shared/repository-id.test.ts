import { describe, expect, test } from "bun:test";

import { isSameRepository, repositoryId } from "./repository-id.ts";

describe("one repository has one ID, by whatever URL", () => {
  const same: readonly (readonly [string, string, ...string[]])[] = [
    [
      "github.com/pulumi/examples",
      "https://github.com/pulumi/examples",
      "https://github.com/pulumi/examples.git",
      "https://GitHub.com:443/Pulumi/examples.git/",
      "https://user:token@github.com/pulumi/examples",
      "git@github.com:pulumi/examples.git",
      "ssh://git@github.com:22/pulumi/examples",
      "ssh://git@ssh.github.com:443/pulumi/examples.git",
    ],
    ["gitlab.com/group/web", "https://gitlab.com/group/web.git", "ssh://git@altssh.gitlab.com:443/group/web.git"],
    ["bitbucket.org/acme/web", "https://bitbucket.org/acme/web", "ssh://git@altssh.bitbucket.org:443/acme/web.git"],
    [
      "git.example/group/sub/web",
      "http://git.example:3000/group/sub/web.git",
      "ssh://git@git.example:2222/group/sub/web.git",
      "git.example:group/sub/web.git",
    ],
    [
      "dev.azure.com/acme/shop/web",
      "https://dev.azure.com/acme/shop/_git/web",
      "https://acme@dev.azure.com/acme/shop/_git/web",
      "git@ssh.dev.azure.com:v3/acme/shop/web",
      "https://acme.visualstudio.com/shop/_git/web",
      "https://acme.visualstudio.com/DefaultCollection/shop/_git/web",
      "acme@vs-ssh.visualstudio.com:v3/acme/shop/web",
    ],
    ["dev.azure.com/acme/web/web", "https://dev.azure.com/acme/_git/web", "git@ssh.dev.azure.com:v3/acme/web/web"],
    [
      "bitbucket.example/proj/web",
      "https://bitbucket.example/scm/PROJ/web.git",
      "ssh://git@bitbucket.example:7999/proj/web.git",
    ],
    ["/proj/web", "PROJ/web"],
  ];
  for (const [id, ...urls] of same) {
    for (const url of urls) test(url, () => expect(repositoryId(url)).toBe(id));
  }
});

test.each(["", "web", "https://host", "https://host/", "not a url", "://x/y", "https://host/scm"])(
  "%p names no repository",
  (text) => {
    expect(repositoryId(text)).toBeUndefined();
  },
);

test("an ID without a host matches every host", () => {
  expect(isSameRepository("bitbucket.example/proj/web", "/proj/web")).toBe(true);
  expect(isSameRepository("bitbucket.example/proj/web", "/roj/web")).toBe(false);
  expect(isSameRepository("bitbucket.example/proj/web", "other.example/proj/web")).toBe(false);
});

test("a URL with a million slashes is read in linear time, because a tenant may send one", () => {
  expect(repositoryId(`https://host${"/".repeat(1_000_000)}acme/web`)).toBe("host/acme/web");
});
