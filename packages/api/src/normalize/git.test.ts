import { describe, expect, test } from "bun:test";

import { Findings } from "./findings.ts";
import { candidateRefs, stackGitRef, parseGitUrl, type GitRef } from "./git.ts";

describe("the URL of a repository", () => {
  const allowed: [string, "https" | "http" | "ssh"][] = [
    ["https://github.com/pulumi/examples", "https"],
    ["https://user@dev.azure.com/org/project/_git/repo", "https"],
    ["https://host:8443/repo.git", "https"],
    ["ssh://git@github.com/pulumi/examples.git", "ssh"],
    ["ssh://git@host:2222/repo.git", "ssh"],
    ["git@github.com:pulumi/examples.git", "ssh"],
    ["github.com:pulumi/examples.git", "ssh"],
    ["git@host:/srv/git/repo.git", "ssh"],
    ["http://github.com/pulumi/examples", "http"],
    ["HTTPS://user:secret@host/repo", "https"],
    ["https://host/@scope/repo", "https"],
    ["https://host/a/@scope/repo@v1", "https"],
    ["https://user@host/a/@scope/repo", "https"],
    ["https://host:8443/%40scope/repo", "https"],
    ["https://git.example.com:8443/@scope/repo", "https"],
    ["http://10.0.0.1:3000/@scope/a/b", "http"],
    ["https://[::1]:8443/@scope/repo", "https"],
    ["ssh://git.example.com:2222/@scope/repo", "ssh"],
    ["https://user:secret@host:8443/repo", "https"],
    ["https://user:sec@ret@host/repo", "https"],
    ["https://[::1]:8443/repo", "https"],
    ["https://[::1]/@scope/repo", "https"],
    ["ssh://git@[::1]/@scope/repo", "ssh"],
    ["ssh@host:repo", "ssh"],
    ["git:repo", "ssh"],
  ];
  for (const [url, transport] of allowed) {
    test(`${url} uses ${transport}`, () => expect(parseGitUrl(url)).toEqual({ transport, url }));
  }

  const rejected = [
    "",
    "examples",
    "/srv/git/repo",
    "git://github.com/pulumi/examples",
    "file:///etc/passwd",
    "ext::sh -c 'id'",
    "--upload-pack=id",
    "-oProxyCommand=id:repo",
    "git@-oProxyCommand=id:repo",
    "ssh://-oProxyCommand=id/repo",
    "https://github.com",
    "https:///repo",
    "https://host/a\nb",
    "https://host/a b",
    // git and URL parsers take these for different hosts, and messages would show the password.
    "https:/user:secret@host/repo",
    "https:user:secret@host/repo",
    "https:///user:secret@host/repo",
    "https:/host/repo",
    String.raw`https:\\user:secret@host\repo`,
    String.raw`https:/\user:secret@host/repo`,
    String.raw`https://user:123\@host/repo`,
    "HTTPS:/user:secret@host/repo",
    "ssh:/user:secret@host/repo",
    "\thttps://user:secret@host/repo",
    "ht\ttps://user:secret@host/repo",
    "\u0001https://user:secret@host/repo",
    "user:secret@host:repo",
    "user:secret@host/repo",
    "git@host:user:secret@other/repo",
    "alice@example.com:12/x@host/repo",
    // A password may contain a slash.
    "https://user:/secret@host/repo",
    "https://user:12/secret@host/repo",
    "https://user:12/secret/@host/repo",
    "https://user:12/secret?x@host/repo",
    "https://user:sec@ret/x@host/repo",
    "https://[::1]:12/secret@host/repo",
    "ssh://user:12/secret@host/repo",
    "https://host:80/user:secret@git.example.com/a",
    // Not certainly a port and a path: a user name without a dot, a password of digits, and a slash in it.
    "https://user:1234/@host/repo",
    "https://host:8443/@scope/repo",
    // A user name may have a dot: then, what follows may be the host.
    "https://alice.smith:1234/@git.example.com/repo",
    "https://alice.smith:1234/@host:8443/repo",
    "https://alice.smith:1234/@[::1]/repo",
    // Of a longer password, too much would be shown.
    "https://alice.smith:12/secret/@host/repo",
    "https://alice.smith:12/@secret@host/repo",
    "https://alice.smith:12/@secret/x@host/repo",
    "https://alice.smith:123456/@host/repo",
    "https://alice.smith:99999/@host/repo",
    "https://alice.smith:12a/@host/repo",
    "https://alice.smith:/@host/repo",
    "https://alice.smith:12//@host/repo",
    "https://alice.smith:12?/@host/repo",
    "https://alice@example.com:1234/@host/repo",
    "https:/git.example.com:8443/@scope/repo",
    "https:///git.example.com:8443/@scope/repo",
    "git.example.com:8443/@scope/repo",
  ];
  for (const url of rejected) {
    test(`${JSON.stringify(url)} is rejected`, () => expect(parseGitUrl(url)).toBeUndefined());
  }
});

describe("a revision", () => {
  const sha = "03658b5514f08970f350618a6e6fdf1bd75f45d0";
  const cases: [string, Parameters<typeof stackGitRef>[0], GitRef][] = [
    ["a short branch", { branch: "main" }, { kind: "branch", name: "main" }],
    ["a branch with a slash", { branch: "feature/add-cache" }, { kind: "branch", name: "feature/add-cache" }],
    ["a full branch", { branch: "refs/heads/main" }, { kind: "branch", name: "main" }],
    ["a tag in branch", { branch: "refs/tags/v1.0" }, { kind: "tag", name: "v1.0" }],
    ["a pull request in branch", { branch: "refs/pull/12/head" }, { kind: "other", name: "refs/pull/12/head" }],
    ["a short tag", { tag: "v1.0" }, { kind: "tag", name: "v1.0" }],
    ["a full tag", { tag: "refs/tags/v1.0" }, { kind: "tag", name: "v1.0" }],
    ["a commit", { commit: sha }, { kind: "commit", sha }],
    ["a commit in uppercase", { commit: sha.toUpperCase() }, { kind: "commit", sha }],
    ["a commit in branch, as in the Go operator", { branch: sha }, { kind: "commit", sha }],
    ["a tag in commit, as in the Go operator", { commit: "v1.0" }, { kind: "branch", name: "v1.0" }],
    ["a commit with an empty branch", { commit: sha, branch: "" }, { kind: "commit", sha }],
  ];
  for (const [what, spec, ref] of cases) {
    test(`${what} is ${ref.kind}`, () => expect(stackGitRef(spec, new Findings("stack"))).toEqual(ref));
  }

  const bad: [string, Parameters<typeof stackGitRef>[0]][] = [
    ["no revision", {}],
    ["two revisions", { branch: "main", tag: "v1" }],
    ["a branch that looks like an option", { branch: "--upload-pack=id" }],
    ["a branch with two dots", { branch: "a..b" }],
    ["a branch with a space", { branch: "a b" }],
    ["a branch that ends in .lock", { branch: "a.lock" }],
    ["an abbreviated commit", { commit: "03658b5" }],
    ["a branch in tag", { tag: "refs/heads/main" }],
  ];
  for (const [what, spec] of bad) {
    test(`${what} is a problem`, () => {
      const findings = new Findings("stack");
      expect(stackGitRef(spec, findings)).toBeUndefined();
      expect(findings.outcome(true).ok).toBe(false);
    });
  }

  test("a branch name matches branches first, then tags", () => {
    expect(candidateRefs({ kind: "branch", name: "v1" })).toEqual(["refs/heads/v1", "refs/tags/v1"]);
    expect(candidateRefs({ kind: "tag", name: "v1" })).toEqual(["refs/tags/v1"]);
    expect(candidateRefs({ kind: "other", name: "refs/pull/1/head" })).toEqual(["refs/pull/1/head"]);
  });
});
