/** Random specs: the normalizer handles all of them, and rejects what the API server rejects. */
import { normalizeStack } from "@pko/api";
import type { Stack } from "@pko/api";
import { isInvalid } from "@pko/kube";
import { seededRandom, testSeed, type ApiServer } from "@pko/testkit";
import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";

import { documentFiles } from "./documents.ts";
import { apiServerWithApi, testTimeoutMs, stacks } from "./install.ts";
import { mutate } from "./mutations.ts";

setDefaultTimeout(testTimeoutMs);

let server: ApiServer;

beforeAll(async () => {
  server = await apiServerWithApi();
}, testTimeoutMs);

const secret = { type: "Secret", secret: { name: "s", key: "k", namespace: "default" } };

/** Has the fields that the Stacks of the docs do not use. */
const rich = {
  stack: "org/web/dev",
  projectRepo: "git@github.com:org/repo.git",
  branch: "refs/heads/main",
  repoDir: "infra/",
  shallow: true,
  gitAuth: { sshAuth: { sshPrivateKey: secret, password: secret }, basicAuth: { userName: secret, password: secret } },
  config: { a: 1, b: { c: [true, null] } },
  configRef: { d: { name: "c", key: "k", json: true } },
  secretsRef: { e: secret, f: { type: "StackOutput", stack: "other", output: "o" } },
  envRefs: { A: secret, B: { type: "ConfigMap", configMap: { name: "c", key: "k" } } },
  envs: ["one"],
  prerequisites: [
    { name: "a", requirement: { succeededWithinDuration: "1h" } },
    { type: "Stack", requirement: "b" },
  ],
  targets: ["urn:a"],
  resyncFrequencySeconds: 300,
  workspaceTemplate: { spec: { initContainers: [{ name: "a" }], env: [{ name: "A", value: "b" }], image: "i" } },
  updateTemplate: { metadata: { labels: { a: "b" } }, spec: { ttlAfterCompleted: "1h", parallel: 2 } },
};

const seeds = [
  rich,
  ...documentFiles.flatMap(({ objects }) => objects.flatMap(({ kind, spec }) => (kind === "Stack" ? [spec] : []))),
];

const stackOf = (spec: unknown) => ({
  apiVersion: stacks.apiVersion,
  kind: stacks.kind,
  metadata: { name: "web", namespace: "default" },
  spec,
});

const amount = 500;
const firstSeed = testSeed("mutations of specs", 4);

function mutants(seed: number): unknown[] {
  const next = seededRandom(seed).next;
  return Array.from({ length: amount }, (_, index) => mutate(seeds[index % seeds.length], next));
}

test(`${amount} random mutations of valid specs never crash the normalizer`, () => {
  for (const spec of mutants(firstSeed)) {
    const stack = stackOf(spec);
    const before = JSON.stringify(stack);
    const outcome = normalizeStack(stack);
    expect(outcome.ok || outcome.problems.every(({ field, message, remedy }) => field && message && remedy)).toBe(true);
    expect(JSON.stringify(stack)).toBe(before);
    expect(normalizeStack(stack)).toEqual(outcome);
  }
});

test("random objects never crash the normalizer", () => {
  const next = seededRandom(firstSeed + 1).next;
  for (let index = 0; index < amount; index++) {
    const object = mutate(stackOf(seeds[index % seeds.length]), next);
    expect(typeof normalizeStack(object).ok).toBe("boolean");
  }
});

test("the normalizer rejects what the API server rejects", async () => {
  const disagreements: unknown[] = [];
  let rejected = 0;
  for (const spec of mutants(firstSeed + 2)) {
    const stack = stackOf(spec) as Stack;
    if (!(await isRejected(stack))) continue;
    rejected++;
    if (normalizeStack(stack).ok) disagreements.push(spec);
  }
  expect(rejected).toBeGreaterThan(amount / 4);
  expect(disagreements).toEqual([]);
});

async function isRejected(stack: Stack): Promise<boolean> {
  try {
    await server.client.create(stacks, stack, { dryRun: true, fieldValidation: "Ignore" });
    return false;
  } catch (error) {
    if (isInvalid(error)) return true;
    throw error;
  }
}
