import { expect, test } from "bun:test";
import { normalizeStack, type StackSpec } from "@pko/api";

import { pullRequestNumberOf } from "../shared/pull-request-preview.ts";
import { forkURL, isPreviewCurrent, previewNameOf, previewStack } from "./preview-stack.ts";
import { aParent, aPreview, commits } from "./testing/views.ts";

const [first, second] = commits;
const head = { number: 7, commit: first };
const specOf = (changes: Partial<StackSpec>): StackSpec => previewStack(aParent(changes), head, undefined).spec;

test("previews the commit instead of the branch, and creates no Pulumi stack", () => {
  expect(specOf({ config: { a: "b" } })).toEqual({
    stack: "acme/web/prod",
    projectRepo: "https://github.com/acme/web",
    commit: first,
    config: { a: "b" },
    preview: true,
    useLocalStackOnly: true,
    maxFailures: 2,
    report: { type: "GitHub", secretRef: { name: "forge" } },
  });
});

test("belongs to the Stack, names the pull request, and is valid", () => {
  const preview = previewStack(aParent(), head, undefined);
  expect(preview.metadata).toEqual({
    name: "web-pr-7",
    namespace: "default",
    labels: { "pulumi.com/preview-of": "web" },
    annotations: { "pulumi.com/pull-request": "7" },
    ownerReferences: [
      {
        apiVersion: "pulumi.com/v1",
        kind: "Stack",
        name: "web",
        uid: "uid-1",
        controller: true,
        blockOwnerDeletion: false,
      },
    ],
  });
  expect(pullRequestNumberOf(preview)).toBe(7);
  expect(normalizeStack(preview)).toMatchObject({ ok: true, value: { operation: "preview", create: false } });
});

test("never destroys, waits, needs an approval, checks for drift or previews pull requests itself", () => {
  const control = {
    approval: { required: "Always" },
    destroyOnFinalize: true,
    driftDetection: { intervalSeconds: 60 },
    prerequisites: [{ name: "db" }],
    protect: true,
    updateWindows: [{ schedule: "0 0 * * *", durationSeconds: 60 }],
    continueResyncOnCommitMatch: true,
  } as const;
  const spec = specOf(control as unknown as Partial<StackSpec>);
  expect(Object.keys(spec).filter((field) => field in control || field === "pullRequests")).toEqual([]);
});

test("reports as the Stack does, otherwise to the forge of the pull request", () => {
  const report = { type: "Gitea", secretRef: { name: "reports" }, consoleURL: "https://console.example.com" } as const;
  expect(specOf({ report }).report).toEqual(report);
  expect(specOf({ report, pullRequests: {} }).report).toEqual(report);
  const own = {
    type: "GitLab",
    secretRef: { name: "x" },
    url: "https://git.example.com/api/v4",
    repository: "a/b",
  } as const;
  expect(specOf({ pullRequests: { ...own, limit: 3 } }).report).toEqual(own);
});

test("is suspended with the Stack", () => {
  expect(specOf({ suspend: true }).suspend).toBe(true);
});

const ownInputs = {
  pullRequests: {
    type: "GitHub",
    secretRef: { name: "forge" },
    serviceAccountName: "previews",
    envRefs: { TOKEN: { type: "Literal", literal: { value: "less" } } },
    environment: ["previews"],
  },
} as const satisfies Partial<StackSpec>;

test("has its own service account, variables and environments instead of those of the Stack", () => {
  const spec = specOf({
    ...ownInputs,
    serviceAccountName: "deployer",
    envRefs: {
      TOKEN: { type: "Literal", literal: { value: "more" } },
      KEY: { type: "Literal", literal: { value: "x" } },
    },
    envs: ["settings"],
    envSecrets: ["keys"],
    accessTokenSecret: "cloud",
    environment: ["production"],
    workspaceTemplate: {
      metadata: { labels: { team: "web" } },
      spec: {
        serviceAccountName: "deployer",
        podTemplate: { spec: { serviceAccountName: "deployer", nodeName: "n1" } },
      },
    },
  });
  expect(JSON.stringify(spec)).not.toMatch(/deployer|more|settings|keys|cloud|production/);
  expect(spec).toMatchObject({
    serviceAccountName: "previews",
    envRefs: ownInputs.pullRequests.envRefs,
    environment: ["previews"],
    workspaceTemplate: { metadata: { labels: { team: "web" } }, spec: { podTemplate: { spec: { nodeName: "n1" } } } },
  });
});

test("keeps the inputs of the Stack if it has none of its own", () => {
  const inputs = { serviceAccountName: "deployer", envSecrets: ["keys"], environment: ["production"] };
  expect(specOf(inputs)).toMatchObject(inputs);
});

test("a run of an earlier commit is cancelled when the pull request moves, and only then", () => {
  const running = aPreview(aParent(), head, { currentUpdate: { name: "web-pr-7-abc", commit: first } });
  const cancelled = (commit: string): string | undefined =>
    previewStack(aParent(), { number: 7, commit }, running).metadata.annotations?.["pulumi.com/cancellation-request"];
  expect([cancelled(second), cancelled(first)]).toEqual(["web-pr-7-abc", undefined]);
});

test("is current until the commit, the Stack or the run to cancel changes", () => {
  const parent = aParent();
  const present = aPreview(parent, head);
  const isCurrent = (wanted = previewStack(parent, head, present)): boolean => isPreviewCurrent(present, wanted);
  expect(isCurrent()).toBe(true);
  expect(isCurrent(previewStack(parent, { number: 7, commit: second }, present))).toBe(false);
  expect(isCurrent(previewStack(aParent({ config: { a: "b" } }), head, present))).toBe(false);
  const running = { ...present, status: { currentUpdate: { name: "u", commit: second } } };
  expect(isCurrent(previewStack(parent, head, running))).toBe(false);
  const annotations = { ...present.metadata.annotations, "pulumi.com/cancellation-request": "by-a-user" };
  const cancelled = { ...present, metadata: { ...present.metadata, annotations } };
  expect(isPreviewCurrent(cancelled, previewStack(parent, head, cancelled))).toBe(true);
});

test("has a name that fits and differs from those of other Stacks", () => {
  const long = "a-stack-with-a-name-of-forty-two-character";
  const names = [previewNameOf(long, 12_345), previewNameOf(`${long.slice(0, -1)}x`, 12_345)];
  for (const name of names) expect(name).toMatch(/^[a-z][-a-z0-9]{0,40}-pr-12345$/);
  for (const name of names) expect(name.length).toBeLessThanOrEqual(42);
  expect(new Set(names).size).toBe(2);
});

test.each([
  ["https://bitbucket.org/acme/web", "https://bitbucket.org/someone/fork"],
  ["https://bitbucket.org/acme/web.git/", "https://bitbucket.org/someone/fork.git"],
  ["git@bitbucket.org:acme/web.git", "git@bitbucket.org:someone/fork.git"],
  ["ssh://git@bitbucket.org:22/acme/web", "ssh://git@bitbucket.org:22/someone/fork"],
])("a fork of %s is read from %s", (repository, expected) => {
  expect(forkURL(repository, "someone/fork")).toBe(expected);
});

test.each(["", "fork", "a/b/c", "a/b?x", "../fork", "a/b c", "https://evil.example/x"])(
  "the name %p of a fork is not used",
  (name) => expect(forkURL("https://bitbucket.org/acme/web", name)).toBeUndefined(),
);

test.each([
  ["characters", "a".repeat(1_000_000), "a".repeat(1_000_000)],
  ["slashes", `https://git.example/acme/web${"/".repeat(1_000_000)}`, "https://git.example/someone/fork"],
  ["suffixes", `https://git.example/acme/${".git".repeat(250_000)}`, "https://git.example/someone/fork.git"],
])("the fork of a URL with a million %s is found in linear time, because a tenant may set one", (...row) => {
  const [, repository, expected] = row;
  expect(forkURL(repository, "someone/fork") === expected).toBe(true);
});
