import { expect, test } from "bun:test";

import { proxyFor } from "./proxy.ts";

const proxy = "http://proxy.example:3128";

const rows: readonly (readonly [string, Record<string, string>, string | undefined])[] = [
  ["https://git.example/", {}, undefined],
  ["https://git.example/", { HTTPS_PROXY: proxy }, proxy],
  ["https://git.example/", { https_proxy: "proxy.example:3128" }, proxy],
  ["https://git.example/", { ALL_PROXY: proxy }, proxy],
  ["http://git.example/", { HTTPS_PROXY: proxy }, undefined],
  ["http://git.example/", { HTTP_PROXY: proxy }, undefined],
  ["http://git.example/", { http_proxy: proxy }, proxy],
];

test.each(rows)("%s with %j goes through %s", (url, env, expected) => {
  expect(proxyFor(new URL(url), env)).toBe(expected);
});

const exceptions: readonly (readonly [string, string, boolean])[] = [
  ["https://git.example/", "*", true],
  ["https://git.example/", "git.example", true],
  ["https://git.example./", "git.example", true],
  ["https://deep.git.example/", "git.example", true],
  ["https://git.example/", ".example, other", true],
  ["https://git.example/", "*.example", true],
  ["https://notgit.example/", "git.example", false],
  ["https://git.example/", "git.example:443", true],
  ["https://git.example:8443/", "git.example:443", false],
  ["https://10.1.2.3/", "10.0.0.0/8", true],
  ["https://11.1.2.3/", "10.0.0.0/8", false],
  ["https://10.1.2.3/", "10.1.2.3", true],
  ["https://[fd00::1]/", "fd00::/8", true],
  ["https://git.example/", "10.0.0.0/8", false],
  ["https://10.1.2.3/", "10.0.0.0/99", false],
  ["https://git.example/", "", false],
];

test.each(exceptions)("%s with NO_PROXY=%s is direct: %s", (url, NO_PROXY, isDirect) => {
  expect(proxyFor(new URL(url), { HTTPS_PROXY: proxy, NO_PROXY })).toBe(isDirect ? undefined : proxy);
});
