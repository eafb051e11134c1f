/** Specs of Stacks, Workspaces and Updates: also those that an older CRD, or none, has let through. */
import { describeProblems, normalizeStack, normalizeUpdate, normalizeWorkspace, type Normalized } from "@pko/api";

import { windowAt } from "../../../packages/api/src/windows/window-at.ts";
import { parseRemote } from "../../../packages/git/src/remote.ts";
import { hold, jsonOf, secret, type Target } from "../engine/target.ts";

const now = Date.UTC(2030, 0, 1);

function check(input: Uint8Array): void {
  const object = jsonOf(input);
  if (object === undefined) return;
  const stack = normalizeStack(object);
  for (const outcome of [stack, normalizeUpdate(object), normalizeWorkspace(object)]) checkOutcome(outcome);
  hold(Bun.deepEquals(normalizeStack(object), stack), "the same spec has the same normal form");
  if (!stack.ok) return;
  const { source, windows, resync, retry } = stack.value;
  for (const ms of [resync.everyMs, retry.maxBackoffMs]) hold(ms > 0 && ms < 2 ** 53, "an interval is a number");
  if (windows.length > 0) {
    const state = windowAt(windows, now);
    if (state.kind === "closed") hold(state.opensAt > now, "a closed window opens later");
    if (state.kind === "open") hold(state.until > now, "an open window closes later");
  }
  // What the normalizer accepts may be rejected later for its transport, but always with a reason.
  if (source.kind === "git") parseRemote(source.repository.url, { allowHttp: false, allowedAddresses: [] });
}

function checkOutcome(outcome: Normalized<unknown>): void {
  if (outcome.ok) return;
  hold(outcome.problems.length > 0, "an invalid spec has a problem");
  hold(
    outcome.problems.every(({ field, message, remedy }) => field && message && remedy),
    "a problem is complete",
  );
  hold(describeProblems(outcome.problems).length < 10_000, "problems fit into a condition");
  hold(!outcome.problems.some(({ message }) => message.includes(secret)), "no problem contains a value");
}

const reference = { type: "Secret", secret: { name: "s", key: "k", namespace: "default" } };
const metadata = { name: "web", namespace: "default" };

const specs: readonly object[] = [
  {
    stack: "org/web/dev",
    projectRepo: "git@github.com:org/repo.git",
    branch: "refs/heads/main",
    repoDir: "infra/",
    gitAuth: { sshAuth: { sshPrivateKey: reference, password: reference } },
    config: { a: 1, b: { c: [true, null] } },
    secretsRef: {
      e: { type: "Literal", literal: { value: "v" } },
      f: { type: "StackOutput", stack: "other", output: "o" },
    },
    envRefs: { A: reference, B: { type: "ConfigMap", configMap: { name: "c", key: "k" } } },
    prerequisites: [{ name: "a", requirement: { succeededWithinDuration: "1h30m" } }],
    updateWindows: [{ schedule: "0 22 * * MON-FRI", durationSeconds: 3600, timeZone: "Europe/Berlin" }],
    resyncFrequencySeconds: 300,
    workspaceTemplate: {
      spec: {
        env: [{ name: "A", value: "b" }],
        image: "i",
        podTemplate: { spec: { containers: [{ name: "pulumi" }] } },
      },
    },
    updateTemplate: { metadata: { labels: { a: "b" } }, spec: { ttlAfterCompleted: "1h", parallel: 2 } },
  },
  {
    stack: "dev",
    fluxSource: {
      sourceRef: { apiVersion: "source.toolkit.fluxcd.io/v1", kind: "GitRepository", name: "r" },
      dir: "d",
    },
  },
  {
    stack: "dev",
    programRef: { name: "p" },
    driftDetection: { intervalSeconds: 60 },
    approval: { required: "Always" },
  },
  {
    stack: "dev",
    projectRepo: "https://github.com/org/repo",
    commit: "0123456789".repeat(4),
    pullRequests: { forge: { type: "GitHub", secretRef: { name: "s" } }, branches: ["main"] },
    updateWindows: [{ schedule: "@daily", durationSeconds: 60 }],
  },
  { workspaceName: "w", stackName: "dev", type: "up", ttlAfterCompleted: "5m", target: ["urn:a"] },
  {
    git: { url: "https://github.com/org/repo", ref: "main", dir: "d" },
    stacks: [{ name: "dev", config: [{ key: "a", value: "b" }] }],
  },
];

export const stacksTarget: Target = {
  name: "stacks",
  form: "json",
  seeds: specs.map((spec) => JSON.stringify({ metadata, spec })),
  words: [
    "*/5",
    "0 0 31 2 *",
    "0 0 29 2 MON",
    "1-5",
    "5/15",
    "0 0 1 1 *",
    "UTC",
    "America/Sao_Paulo",
    "+01:00",
    "1h",
    "-1s",
    "1e9h",
    "..",
    "refs/tags/v1",
  ],
  maxBytes: 4096,
  rounds: 1500,
  check,
};
