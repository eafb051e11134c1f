/** A Git repository that the cluster can reach, with a branch for each Stack that follows it. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { serveGit } from "@pko/agent/testing";
import { givenKubeconfig, network, run } from "@pko/cluster";

import { projectFile } from "./stack.ts";

export interface Repository {
  readonly url: string;
  /** Returns when the commit is visible in the repository. */
  push(branch: string, text: string): Promise<string>;
  stop(): Promise<void>;
}

/** The repository in GIT_URL, which `git push` on this machine must be able to write to; otherwise a new local one. */
export async function openRepository(givenUrl: string | undefined): Promise<Repository | string> {
  if (givenUrl === undefined && givenKubeconfig !== undefined) {
    return "the cluster cannot reach this machine: set GIT_URL to a repository that you can push to";
  }
  const folder = await mkdtemp(join(tmpdir(), "pko-bench-git-"));
  return givenUrl === undefined ? await ownRepository(folder) : await clone(folder, givenUrl, givenUrl);
}

async function ownRepository(folder: string): Promise<Repository> {
  const bare = join(folder, "served/bench.git");
  await mkdir(bare, { recursive: true });
  await run(["git", "init", "--quiet", "--bare", "--initial-branch=main", bare]);
  const server = serveGit(join(folder, "served"), { hostname: network.machine });
  const repository = await clone(folder, bare, `http://${network.machine}:${server.port}/bench.git`);
  return {
    ...repository,
    async stop() {
      await server.stop();
      await repository.stop();
    },
  };
}

async function clone(folder: string, from: string, url: string): Promise<Repository> {
  const work = join(folder, "work");
  const git = (...args: string[]): Promise<string> =>
    run(["git", "-c", "user.name=bench", "-c", "user.email=bench@example.com", ...args], { cwd: work });
  await mkdir(work);
  await git("init", "--quiet");
  await git("remote", "add", "origin", from);
  return {
    url,
    async push(branch, text) {
      await git("checkout", "--quiet", "-B", branch);
      await writeFile(join(work, "Pulumi.yaml"), projectFile(text));
      await git("add", "--all");
      await git("commit", "--quiet", "--allow-empty", "--message", text);
      await git("push", "--quiet", "--force", "origin", branch);
      return (await git("rev-parse", "HEAD")).trim();
    },
    stop: () => rm(folder, { recursive: true, force: true }),
  };
}
