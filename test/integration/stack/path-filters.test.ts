/** Stacks with path filters, and a real Git server. */
import { expect, test } from "bun:test";
import { reconcileRequestAnnotation, type Stack, type Workspace } from "@pko/api";
import { globSelector } from "@pko/git";
import { gitLister } from "@pko/operator";

import { gitServer, type GitServer } from "./git-server.ts";
import { StackScene, testTimeoutMs } from "./scene.ts";

const many = 50;
const folders = Array.from({ length: many }, (_, index) => `stacks/web-${index}`);
const monorepo = (changes: Readonly<Record<string, string>> = {}): Record<string, string> => ({
  ...Object.fromEntries(folders.map((folder) => [`${folder}/Pulumi.yaml`, folder])),
  ...Object.fromEntries(folders.map((folder) => [`${folder}/src/index.ts`, "1"])),
  "README.md": "one",
  ...changes,
});
const nameOf = (folder: string): string => folder.slice("stacks/".length);
const hasSkipped = (commit: string) => (stack: Stack) => stack.status?.skippedCommit?.commit === commit;

test(
  "in a monorepo with fifty Stacks, a commit that changes one folder runs one Stack",
  async () => {
    using server = gitServer();
    server.git("config", "uploadpack.allowFilter", "true");
    const first = server.commitFiles(monorepo());
    await using scene = await StackScene.open();
    const source = { projectRepo: server.url, branch: "main" };
    await Promise.all(
      folders.map((folder) =>
        scene.stack(nameOf(folder), { ...source, repoDir: folder, pathFilters: [`${folder}/**`] }),
      ),
    );
    await Promise.all(folders.map((folder) => scene.isReady(nameOf(folder), first)));
    expect(scene.runs).toHaveLength(many);

    const second = server.commitFiles(monorepo({ "stacks/web-7/src/index.ts": "2" }));
    scene.jump(64_000);
    await scene.isReady("web-7", second);
    const others = folders.map(nameOf).filter((name) => name !== "web-7");
    await Promise.all(others.map((name) => scene.becomes(name, `past ${second}`, hasSkipped(second))));
    await scene.fence();
    expect(scene.runs.slice(many)).toEqual([`up@${second}`]);
    const { status } = await scene.get("web-8");
    expect(status).toMatchObject({
      lastUpdate: { lastSuccessfulCommit: first },
      skippedCommit: { commit: second, since: first },
      conditions: [{ type: "Ready", status: "True" }],
    });

    const third = server.commitFiles(monorepo({ "stacks/web-7/src/index.ts": "2", "stacks/web-8/new/deep/a": "new" }));
    scene.jump(64_000);
    await scene.isReady("web-8", third);
    await Promise.all(
      folders
        .map(nameOf)
        .filter((name) => name !== "web-8")
        .map((name) => scene.becomes(name, `past ${third}`, hasSkipped(third))),
    );
    expect(scene.runs.slice(many)).toEqual([`up@${second}`, `up@${third}`]);
  },
  testTimeoutMs * 2,
);

/** As the agent does, which has fetched the commit. */
function comparedBy(server: GitServer, { spec }: Workspace): { readonly unchangedSince?: string } {
  const { ref = "", compareWith } = spec?.git ?? {};
  if (!compareWith) return {};
  const { commit, pathFilters = [] } = compareWith;
  const paths = server.git("diff-tree", "-r", "--name-only", commit, ref).split("\n");
  return paths.some(globSelector(pathFilters)) ? {} : { unchangedSince: commit };
}

test(
  "if the Git server cannot compare the commits, the agent does, before an Update is created",
  async () => {
    using server = gitServer();
    server.git("config", "uploadpack.allowFilter", "false");
    const first = server.commitFiles(monorepo());
    await using scene = await StackScene.open({ limits: { total: 1, inNamespace: () => 1 } });
    scene.simulator.script.workspace = (workspace) => ({ ready: true, ...comparedBy(server, workspace) });
    const names = ["web-1", "web-2"];
    for (const name of names) {
      const pathFilters = [`stacks/${name}/**`];
      const more = name === "web-2" ? { workspaceReclaimPolicy: "Delete" as const } : {};
      await scene.stack(name, { projectRepo: server.url, branch: "main", pathFilters, ...more });
    }
    for (const name of names) await scene.isReady(name, first);

    const second = server.commitFiles(monorepo({ "README.md": "two" }));
    scene.jump(64_000);
    for (const name of names) await scene.becomes(name, `past ${second}`, hasSkipped(second));
    const third = server.commitFiles(monorepo({ "README.md": "two", "stacks/web-1/src/index.ts": "2" }));
    scene.jump(64_000);
    await scene.isReady("web-1", third);
    await scene.becomes("web-2", `past ${third}`, hasSkipped(third));
    await scene.fence();
    expect(scene.runs.slice(names.length)).toEqual([`up@${third}`]);
    expect((await scene.get("web-2")).status).toMatchObject({
      lastUpdate: { lastSuccessfulCommit: first },
      skippedCommit: { commit: third, since: first },
      conditions: [{ type: "Ready", status: "True" }],
    });
    // A request runs with the newest commit, in a workspace that compares nothing.
    await scene.annotate("web-2", { [reconcileRequestAnnotation]: "now" });
    await scene.isReady("web-2", third);
    expect((await scene.get("web-2")).status?.skippedCommit).toBeUndefined();
  },
  testTimeoutMs,
);

test(
  "a Stack runs if neither the Git server nor the agent can compare the commits",
  async () => {
    using server = gitServer();
    server.git("config", "uploadpack.allowFilter", "false");
    const first = server.commitFiles(monorepo());
    await using scene = await StackScene.open();
    await scene.stack("web", { projectRepo: server.url, branch: "main", pathFilters: ["stacks/web-1/**"] });
    await scene.isReady("web", first);
    const second = server.commitFiles(monorepo({ "README.md": "two" }));
    scene.jump(64_000);
    await scene.isReady("web", second);
  },
  testTimeoutMs,
);

const settings = { policy: { allowHttp: true, allowedAddresses: ["127.0.0.1"] }, inherited: process.env };

function compare(server: GitServer, from: string, to: string) {
  const { signal } = new AbortController();
  return gitLister(settings).compare({ url: server.url, credentials: { kind: "none" } }, { from, to }, signal);
}

test("the files that differ are found by their trees, and with few bytes", async () => {
  using server = gitServer();
  server.git("config", "uploadpack.allowFilter", "true");
  const base = { "a/b/c/file": "1", "a/b/other": "1", gone: "x", "dir/one": "1", "dir/two": "2", kept: "1" };
  const { gone: _, ...rest } = base;
  const { "dir/one": __, "dir/two": ___, ...withoutDirectory } = rest;
  const first = server.commitFiles(base);
  const second = server.commitFiles({ ...rest, "a/b/c/file": "2", "new/x/y": "1" });
  const third = server.commitFiles({ ...withoutDirectory, "a/b/c/file": "2", "new/x/y": "1", dir: "now a file" });
  const paths = (...list: string[]) => ({ kind: "compared" as const, paths: list });
  expect(await compare(server, first, second)).toEqual(paths("a/b/c/file", "gone", "new/x/y"));
  expect(await compare(server, second, first)).toEqual(paths("a/b/c/file", "gone", "new/x/y"));
  expect(await compare(server, second, third)).toEqual(paths("dir", "dir/one", "dir/two"));
  expect(await compare(server, first, first)).toEqual(paths());
});

test("what differs is unknown after a force-push that removed the commit, and for a changed submodule", async () => {
  using server = gitServer();
  server.git("config", "uploadpack.allowFilter", "true");
  const first = server.commitFiles({ a: "1" });
  expect(await compare(server, "f".repeat(40), first)).toMatchObject({ kind: "unknown" });
  server.git("read-tree", first);
  server.git("update-index", "--add", "--cacheinfo", `160000,${"e".repeat(40)},library`);
  const withSubmodule = server.git("commit-tree", server.git("write-tree"), "-m", "with a submodule");
  expect(await compare(server, first, withSubmodule)).toEqual({
    kind: "unknown",
    reason: "the submodule library differs",
  });
});
