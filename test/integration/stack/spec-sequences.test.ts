/** Specs that change repeatedly and return to their first state: so does everything that follows from them. */
import { expect, test } from "bun:test";
import type { StackSpec } from "@pko/api";
import { ApiError } from "@pko/kube";
import { stacks, workspaces } from "@pko/operator";
import { seededRandom, testSeed } from "@pko/testkit";

import type { Numbers } from "../api/mutations.ts";
import { condition, StackScene } from "./scene.ts";

/** With FAULTS=all as many as a release requires; otherwise a sample. Both start at the seed. */
const amount = process.env["FAULTS"] === "all" ? 200 : 24;
const first = testSeed("changes of specs");
const concurrency = 8;
const changes = 4;

const literal = (value: string) => ({ type: "Literal", literal: { value } });

const seed: StackSpec = {
  stack: "dev",
  programRef: { name: "program" },
  config: { "web:size": "3", "web:list": ["a", "b"] },
  secretsRef: { "web:password": literal("secret") },
  envRefs: { REGION: literal("here") },
  refresh: true,
  targets: ["urn:pulumi:dev::web::a:b:C::name"],
  destroyOnFinalize: true,
  continueResyncOnCommitMatch: true,
  resyncFrequencySeconds: 3600,
  retryMaxBackoffDurationSeconds: 60,
  serviceAccountName: "default",
  workspaceReclaimPolicy: "Retain",
  workspaceTemplate: {
    metadata: { labels: { team: "web" } },
    spec: { image: "image:1", resources: { limits: { cpu: "1" } } },
  },
  updateTemplate: { metadata: { labels: { team: "web" } }, spec: { ttlAfterCompleted: "1h" } },
};

const from = (name: string) => ({ type: "Secret", secret: { name, key: "key" } });

/** Other values of each field: valid, invalid, missing, and rejected by the API server only in the generated objects. */
const others: Readonly<Record<string, readonly unknown[]>> = {
  stack: ["prod", "organization/web/dev", "not a valid name"],
  programRef: [undefined, { name: "other" }, { name: "absent" }],
  config: [undefined, { ...seed.config, "web:more": "1" }, { "web:size": "4" }, { "web:deep": { a: [1] } }, { "": "" }],
  secretsRef: [
    undefined,
    { ...seed.secretsRef, "web:more": literal("1") },
    { "web:password": from("absent") },
    { "web:token": literal("other") },
  ],
  envRefs: [
    undefined,
    { ...seed.envRefs, MORE: literal("1") },
    { REGION: from("absent") },
    { HOME: { type: "FS", filesystem: { path: "/" } } },
    { "=": literal("") },
  ],
  refresh: [undefined, false],
  preview: [true],
  targets: [undefined, ["urn:pulumi:dev::web::a:b:C::other"], [""]],
  prerequisites: [[{ name: "absent" }], [{ name: "still", requirement: { succeededWithinDuration: "1h" } }]],
  continueResyncOnCommitMatch: [false],
  resyncFrequencySeconds: [undefined, 60, 86_400],
  serviceAccountName: [undefined, "other", "No/Good"],
  workspaceReclaimPolicy: ["Delete", undefined],
  workspaceTemplate: [
    undefined,
    { spec: { image: "image:2" } },
    { metadata: { labels: { team: "no good!" } } },
    { spec: { podTemplate: { spec: { containers: [{ name: "pulumi", env: [{ name: "A", value: "b" }] }] } } } },
    { spec: { ...seed.workspaceTemplate?.spec, podTemplate: { metadata: { labels: { more: "1" } } } } },
    { spec: { local: { dir: "/app" } } },
  ],
  updateTemplate: [undefined, { metadata: { labels: { team: "no good!" } } }, { spec: { ttlAfterCompleted: "2h" } }],
  expectNoRefreshChanges: [true],
};

/** The seed with one to four other fields. */
function changed(next: Numbers): object {
  const names = Object.keys(others);
  const spec: Record<string, unknown> = { ...seed };
  for (let count = 1 + Math.floor(next() * 4); count > 0; count--) {
    const name = names[Math.floor(next() * names.length)] ?? "";
    const values = others[name] ?? [];
    spec[name] = values[Math.floor(next() * values.length)];
  }
  return spec;
}

test(`${amount} Stacks, each through ${changes} random specs and back to its first, end like one that was never changed`, async () => {
  await using scene = await StackScene.open();
  for (const name of ["program", "other"]) await scene.program(name);
  await scene.stack("still", seed);
  await scene.isReady("still");
  const expected = await resultOf(scene, "still");
  const numbers = Array.from({ length: amount }, (_, index) => first + index);
  const differing: string[] = [];
  let accepted = 0;
  const workers = Array.from({ length: concurrency }, async () => {
    for (let number = numbers.pop(); number !== undefined; number = numbers.pop()) {
      const name = `moved-${number}`;
      const count = await changeAndReturn(scene, name, seededRandom(number).next);
      accepted += count;
      const result = await resultOf(scene, name);
      if (!Bun.deepEquals(result, expected)) differing.push(`${name}: ${JSON.stringify(result)}`);
    }
  });
  await Promise.all(workers);
  console.log(`    ${accepted} changes`);
  expect(differing, JSON.stringify(expected)).toEqual([]);
  expect(accepted).toBeGreaterThan(amount);
}, 600_000);

/** Returns how many of the changes the API server accepted. */
async function changeAndReturn(scene: StackScene, name: string, next: Numbers): Promise<number> {
  await scene.stack(name, seed);
  let accepted = 0;
  for (let change = 0; change < changes; change++) {
    if (await isAccepted(scene, name, changed(next))) accepted += 1;
    // The next change may come at any step of the operator.
    await Bun.sleep(next() * 150);
  }
  expect(await isAccepted(scene, name, seed)).toBe(true);
  await scene.isReady(name);
  return accepted;
}

async function isAccepted(scene: StackScene, name: string, spec: object): Promise<boolean> {
  const patch = { type: "json", body: [{ op: "replace", path: "/spec", value: spec }] } as const;
  try {
    await scene.client.patch(stacks, { namespace: scene.namespace, name }, { patch });
    return true;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 400 || error.status === 422)) return false;
    throw error;
  }
}

/** Everything that follows from the spec, without the name of the Stack. */
async function resultOf(scene: StackScene, name: string): Promise<object> {
  const stack = await scene.get(name);
  const workspace = await scene.client.get(workspaces, { namespace: scene.namespace, name });
  const { name: updateName, type, state, failures } = stack.status?.lastUpdate ?? {};
  // The message depends on the trigger, which may differ.
  const { message: _, ...update } = scene.simulator.runs.find((each) => each.name === updateName)?.spec ?? {};
  const { status, reason, message } = condition(stack, "Ready") ?? {};
  const result = {
    labels: workspace.metadata.labels,
    workspace: workspace.spec,
    update,
    lastUpdate: { type, state, failures },
    ready: { status, reason, message },
    finalizers: stack.metadata.finalizers,
  };
  return JSON.parse(JSON.stringify(result).replaceAll(name, "NAME")) as object;
}
