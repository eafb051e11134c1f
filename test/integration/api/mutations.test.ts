/** Specs that nobody would write: the normaliser answers each, and lets nothing through that the API server refuses. */
import { normaliseStack } from "@pko/api";
import type { Stack } from "@pko/api";
import { isInvalid } from "@pko/kube";
import type { ApiServer } from "@pko/testkit";
import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";

import { documentFiles } from "./documents.ts";
import { apiServerWithApi, patience, stacks } from "./install.ts";
import { mutated, numbersFrom } from "./mutations.ts";

setDefaultTimeout(patience);

let server: ApiServer;

beforeAll(async () => {
  server = await apiServerWithApi();
}, patience);

const secret = { type: "Secret", secret: { name: "s", key: "k", namespace: "default" } };

/** Has what the documents' Stacks have not. */
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

function mutants(seed: number): unknown[] {
  const next = numbersFrom(seed);
  return Array.from({ length: amount }, (_, index) => mutated(seeds[index % seeds.length], next));
}

test(`${amount} random mutations of valid specs never crash the normaliser`, () => {
  for (const spec of mutants(4)) {
    const stack = stackOf(spec);
    const before = JSON.stringify(stack);
    const outcome = normaliseStack(stack);
    expect(outcome.ok || outcome.problems.every(({ field, message, remedy }) => field && message && remedy)).toBe(true);
    expect(JSON.stringify(stack)).toBe(before);
    expect(normaliseStack(stack)).toEqual(outcome);
  }
});

test("nor does anything that is no object of the API", () => {
  const next = numbersFrom(5);
  for (let index = 0; index < amount; index++) {
    const object = mutated(stackOf(seeds[index % seeds.length]), next);
    expect(typeof normaliseStack(object).ok).toBe("boolean");
  }
});

test("what the API server refuses, the normaliser refuses too", async () => {
  const disagreements: unknown[] = [];
  let refused = 0;
  for (const spec of mutants(6)) {
    const stack = stackOf(spec) as Stack;
    if (!(await isRefused(stack))) continue;
    refused++;
    if (normaliseStack(stack).ok) disagreements.push(spec);
  }
  expect(refused).toBeGreaterThan(amount / 4);
  expect(disagreements).toEqual([]);
});

async function isRefused(stack: Stack): Promise<boolean> {
  try {
    await server.client.create(stacks, stack, { dryRun: true, fieldValidation: "Ignore" });
    return false;
  } catch (error) {
    if (isInvalid(error)) return true;
    throw error;
  }
}
