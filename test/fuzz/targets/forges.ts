/** Responses of forges, whose URL a tenant chooses, and the URL of the repository, which determines what is requested. */
import type { NormalPullRequests } from "@pko/api";
import { forge, ForgeError, targetOf, type ForgeHttp } from "@pko/forge";

import { forkURL } from "../../../packages/operator/src/pull-requests/preview-stack.ts";
import { selectPullRequests } from "../../../packages/operator/src/pull-requests/selection.ts";
import { hold, jsonOf, secret, type Target } from "../engine/target.ts";

const forgeTypes = ["GitHub", "GitLab", "Gitea", "Bitbucket", "BitbucketDataCenter"] as const;
const maxRequests = 200;
const defaultRemote = "https://forge.example/acme/web.git";

interface Answer {
  /** The URL of the repository; only the one of the first answer counts. */
  readonly remote?: unknown;
  readonly status?: unknown;
  readonly headers?: unknown;
  readonly body?: unknown;
}

/** Answers with the responses of the input, again and again. */
function answering(answers: readonly unknown[], origin: string): ForgeHttp {
  let requests = 0;
  return ({ url }) => {
    hold(url.origin === origin, "requests stay at the origin of the API");
    hold(requests < maxRequests, "the number of requests is limited");
    const { status, headers, body } = (answers[requests++ % answers.length] ?? {}) as Answer;
    const known = new Map(Object.entries(headers ?? {}));
    return Promise.resolve({
      status: typeof status === "number" ? status : 200,
      header: (name) => (typeof known.get(name) === "string" ? (known.get(name) as string) : undefined),
      text: typeof body === "string" ? body : (JSON.stringify(body) ?? ""),
    });
  };
}

async function check(input: Uint8Array): Promise<void> {
  const answers = jsonOf(input);
  if (!Array.isArray(answers) || answers.length === 0) return;
  const { remote = defaultRemote } = (answers[0] ?? {}) as Answer;
  if (typeof remote !== "string") return;
  forkURL(remote, "someone/fork");
  for (const type of forgeTypes) {
    const target = targetOf({ type, url: "https://forge.example/api" }, remote);
    if (!target) return;
    const open = () =>
      forge(target, { kind: "token", token: secret }, { http: answering(answers, "https://forge.example") });
    await attempt(async () => {
      const { pullRequests } = await open().openPullRequests(30);
      hold(pullRequests.length <= 30, "no more pull requests are read than requested");
      const { selected } = selectPullRequests(pullRequests, selection);
      for (const { number, head } of selected) {
        hold(Number.isSafeInteger(number) && number > 0, "a pull request has a number");
        hold(/^[0-9a-f]{40,64}$/.test(head.commit), "a pull request has a commit");
      }
    });
    await attempt(() => open().openPullRequest(7));
    await attempt(() => open().putComment(7, { marker: "m", body: "text", known: "1" }));
    await attempt(() => open().setStatus("0".repeat(40), { context: "c", state: "success", description: "d" }));
  }
}

const selection: NormalPullRequests = {
  forge: { type: "GitHub", secretRef: { name: "s" } },
  branches: [],
  labels: [],
  limit: 10,
  everyMs: 60_000,
  allowForks: true,
};

async function attempt(use: () => Promise<unknown>): Promise<void> {
  try {
    await use();
  } catch (error) {
    if (!(error instanceof ForgeError)) throw error;
    hold(!error.message.includes(secret), "an error contains no credentials and nothing of the response");
    hold((error.retryAfterMs ?? 0) >= 0, "a forge cannot set a time in the past");
  }
}

const commit = "0123456789".repeat(4);
const pullRequest = {
  number: 7,
  state: "open",
  title: "t",
  html_url: "https://x",
  head: { ref: "f", sha: commit, repo: { id: 1 } },
  base: { ref: "main", repo: { id: 1 } },
  labels: [{ name: "l" }],
};
const link = '<https://forge.example/api/next?page=2>; rel="next"';

export const forgesTarget: Target = {
  name: "forges",
  form: "json",
  seeds: [
    [{ status: 200, headers: { link }, body: [pullRequest] }, { body: [pullRequest] }],
    [{ body: [{ iid: 7, state: "opened", sha: commit, source_branch: "f", target_branch: "main", labels: ["l"] }] }],
    [
      {
        body: {
          next: "https://forge.example/api/2",
          values: [
            {
              id: 7,
              state: "OPEN",
              source: { branch: { name: "f" }, commit: { hash: "0123456" }, repository: { full_name: "a/b" } },
            },
          ],
        },
      },
      { body: { values: [{ hash: commit }] } },
    ],
    [
      {
        body: {
          isLastPage: false,
          nextPageStart: 2,
          values: [
            {
              id: 7,
              state: "OPEN",
              fromRef: { id: "refs/heads/f", latestCommit: commit },
              toRef: { id: "refs/heads/main" },
            },
          ],
        },
      },
    ],
    [{ remote: "git@forge.example:group/my web/app", body: [] }],
    [{ remote: "https://forge.example/scm/PROJ/web/", body: [] }],
    [{ status: 404 }, { body: [{ id: 1, body: "<!-- m -->" }] }, { status: 201, body: { id: 2 } }],
    [
      {
        status: 403,
        headers: { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "99", date: "Mon, 01 Jan 2030 00:00:00 GMT" },
      },
    ],
    [
      {
        status: 429,
        headers: { "retry-after": "Mon, 01 Jan 2030 00:00:00 GMT", date: "Mon, 01 Jan 2029 00:00:00 GMT" },
        body: secret,
      },
    ],
  ].map((answers) => JSON.stringify(answers)),
  words: [link, "<https://>; rel=next", "https:", "http://other.example/", "<!-- m -->", "[//]: # (m)", "retry-after"],
  rounds: 1200,
  check,
};
