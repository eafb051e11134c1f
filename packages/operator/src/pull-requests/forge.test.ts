import { expect, test } from "bun:test";
import { standInForge } from "@pko/forge/testing";

import { githubAppTokens } from "../sources/github-app.ts";
import { forgeLister } from "./forge.ts";
import { aPullRequest } from "./testing/views.ts";

const policy = { allowHttp: true, allowedAddresses: ["127.0.0.1"] };
const list = forgeLister({ policy, githubApps: githubAppTokens({ policy }) });

/** A repository with this many open pull requests, the newest first. */
function crowded(count: number) {
  const server = standInForge("GitHub");
  server.pageSize = 100;
  server.pullRequests = Array.from({ length: count }, (_, index) => aPullRequest(count - index));
  const { type, url, repository, token } = server;
  const secret = { name: "forge", values: { token } };
  const target = { type, url, repository };
  return { server, repository: { target, host: "127.0.0.1", url: "https://git.example/acme/web", secret } };
}

test("pull requests with a preview are read one by one if the list does not contain them", async () => {
  const { server, repository } = crowded(302);
  using _ = server;
  server.closedPullRequests = [aPullRequest(900)];
  const previews = [302, 2, 900, 901];
  const result = await list(repository, { previews, signal: new AbortController().signal });
  if (result.kind !== "listed") throw new Error(result.message);
  expect(result.pullRequests.map(({ number }) => number).slice(-2)).toEqual([3, 2]);
  expect(result.pullRequests).toHaveLength(301);
  expect(result.truncated).toEqual({ closed: [900, 901] });
});

test("a complete list needs no further requests", async () => {
  const { server, repository } = crowded(2);
  using _ = server;
  const result = await list(repository, { previews: [3], signal: new AbortController().signal });
  expect(result).toEqual({ kind: "listed", pullRequests: server.pullRequests });
  expect(server.calls).toHaveLength(1);
});
