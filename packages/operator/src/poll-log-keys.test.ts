/** A poller that fails in a way that nobody expected: its line names what a reader needs to find the cause. */
import { expect, test } from "bun:test";
import { logger, manualClock, type Logger } from "@pko/kube";
import { maskCredentials } from "@pko/records";

import { pullRequestPoller } from "./pull-requests/poller.ts";
import { inProcess } from "./sources/git-lister.ts";
import { gitPoller } from "./sources/git-poller.ts";
import { pathComparisons } from "./sources/path-comparisons.ts";

type Follow = (key: string) => void;
type Options = {
  readonly log: Logger;
  readonly clock: ReturnType<typeof manualClock>;
  readonly wake: () => void;
};

const url = "https://git:hunter2@git.example:8443/team/web";
const credentials = { kind: "none" } as const;
const broken = (): Promise<never> => Promise.reject(new Error(`no protocol for ${url}`));
const pending = { kind: "pending" } as const;

const pollers: Readonly<Record<string, (options: Options) => Follow>> = {
  "polling a repository failed unexpectedly": (options) => {
    const poller = gitPoller({ ...options, lister: inProcess(broken) });
    const ref = { kind: "branch", name: "main" } as const;
    return (key) => poller.follow(key, { url, credentials, ref, everyMs: 3_600_000, request: "" }, pending);
  },
  "comparing two commits failed unexpectedly": (options) => {
    const comparisons = pathComparisons({ ...options, comparer: { compare: broken } });
    return (key) => comparisons.follow(key, [{ url, credentials, from: "c0", to: "c1" }]);
  },
  "reading pull requests failed unexpectedly": (options) => {
    const poller = pullRequestPoller({ ...options, list: broken });
    const target = { type: "GitHub", url: "https://git.example:8443/api", repository: "team/web" } as const;
    const secret = { name: "forge", values: { token: "hunter2" } };
    const repository = { target, host: "git.example:8443", url, secret };
    return (key) => poller.follow(key, { repository, everyMs: 3_600_000, request: "", previews: [] }, pending);
  },
};

/** The lines of a poller that these Stacks follow. */
async function linesOf(open: (options: Options) => Follow, stacks: readonly string[]): Promise<unknown[]> {
  const lines: string[] = [];
  const log = logger({ write: (line) => lines.push(line), redact: (text) => maskCredentials(text) });
  const clock = manualClock();
  const follow = open({ log, clock, wake: () => undefined });
  for (const key of stacks) follow(key);
  await clock.advance(1000);
  return lines.map((line): unknown => JSON.parse(line));
}

test.each(Object.entries(pollers))("%s: the line names the host and the Stack", async (msg, open) => {
  const lines = await linesOf(open, ["team/web"]);
  expect(lines).toMatchObject([
    { level: "error", msg, host: "git.example:8443", namespace: "team", stack: "web", error: {} },
  ]);
  expect(JSON.stringify(lines)).not.toMatch(/otherStacks|hunter2/);
});

test.each(Object.entries(pollers))("%s: one line for all Stacks that share it", async (msg, open) => {
  const lines = await linesOf(open, ["team/web", "team/api", "team/shop"]);
  expect(lines).toMatchObject([{ msg, namespace: "team", stack: "web", otherStacks: 2 }]);
});
