/** URLs of repositories, which users and webhooks provide, and addresses that name servers return. */
import { isIP } from "node:net";

import { isForbidden, parseRemote, proxyFor } from "@pko/git";

import { parseGitUrl } from "../../../packages/api/src/normalize/git.ts";
import { repositoryOf } from "../../../packages/forge/src/targets.ts";
import { explainGit } from "../../../packages/git/src/explain.ts";
import { globSelector } from "../../../packages/git/src/globs.ts";
import { repositoryId } from "../../../packages/operator/src/shared/repository-id.ts";
import { hold, textOf, type Target } from "../engine/target.ts";

const policy = { allowHttp: true, allowedAddresses: [] };

function check(input: Uint8Array): void {
  const text = textOf(input);
  const id = repositoryId(text);
  if (id !== undefined) hold(!id.endsWith("/") && id === id.toLowerCase(), "an ID is in its normal form");
  repositoryOf(text);
  parseGitUrl(text);
  explainGit(text);
  checkRemote(text);
  if (isIP(text) !== 0) isForbidden(text);
  proxyFor(new URL("https://[2001:db8::1]:8443/"), { https_proxy: "proxy:3128", no_proxy: text });
  checkGlobs(text.split("\n"));
}

const maxNameLength = 4096;

/** The lines are globs, and names to match: as they are, and as long as a path can be. */
function checkGlobs(lines: readonly string[]): void {
  const globs = lines.slice(0, 8);
  const names = ["refs/heads/release/1.0", ...lines.slice(0, 8).map((line) => line.slice(0, maxNameLength))];
  const long = names.map((name) => name.repeat(Math.ceil(maxNameLength / (name.length + 1))));
  const isSelected = globSelector(globs);
  for (const name of [...names, ...long]) isSelected(name);
  for (const glob of globs.filter(isCheap)) {
    const expected = new Bun.Glob(glob);
    for (const name of names) hold(globSelector([glob])(name) === expected.match(name), "a glob means the same to Bun");
  }
}

/** Bun alone takes long for others. A glob that excludes is matched without its first character. */
const isCheap = (glob: string): boolean => glob.length < 100 && !glob.startsWith("!") && glob.split("{").length < 4;

function checkRemote(text: string): void {
  const parsed = parseRemote(text, policy);
  if (!parsed.ok) return hold(parsed.message.length < 400 + text.length, "a message is short");
  const { remote } = parsed;
  const url = remote.kind === "http" ? remote.url.href : remote.url;
  hold(!url.startsWith("-"), "git does not take a URL for an option");
  // oxlint-disable-next-line no-control-regex -- it must match control characters
  hold(!/[\u0000-\u0020]/.test(url), "a URL has no spaces");
  hold(!/^[a-z]+::/.test(url), "a URL names no transport helper");
  if (remote.kind === "http") {
    hold(remote.url.username === "" && remote.url.password === "", "a URL has no credentials");
    return;
  }
  hold(!remote.host.startsWith("-"), "ssh does not take a host for an option");
  hold(remote.port > 0 && remote.port < 65_536, "a port is valid");
}

export const repositoriesTarget: Target = {
  name: "repositories",
  form: "text",
  seeds: [
    "https://user:pass@github.com/acme/web.git",
    "git@github.com:acme/web.git",
    "ssh://git@[2001:db8::1]:2222/acme/web",
    "https://dev.azure.com/acme/shop/_git/web",
    "git@ssh.dev.azure.com:v3/acme/shop/web",
    "https://acme.visualstudio.com/DefaultCollection/shop/_git/web",
    "https://git.example/scm/acme/web.git",
    "ACME/web",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "fatal: repository 'https://x/' not found\nerror: 404",
    "refs/heads/*\n!refs/heads/**/{a,b}\n[a-z]",
    "**/*a/*a/*a/*[!b]\naaaa/aaaa/aaaa/aaaa/b",
    "{*a,*b}{*a,*b}{*a,*b}c*\nabababab",
    "packages/{web,api}/{src,test}/**\npackages/api/test/index.ts",
    "10.0.0.0/8,.example.com:8443,[::1]",
  ],
  words: [
    "ext::",
    "ssh://",
    "https://",
    "http://",
    "file://",
    "::",
    "@",
    "-oProxyCommand=x",
    ".git",
    "%2e%2e",
    "%00",
    "xn--",
    "127.1",
    "[::1]",
    "/scm/",
    "**/",
    "{a,b}",
    "{*,a}",
    "[!b]",
  ],
  rounds: 4000,
  check,
};
