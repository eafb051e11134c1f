/** The requests of fifty Stacks of one repository, counted at the Git server. */
import { expect, test } from "bun:test";

import { testTimeoutMs, StackScene } from "./scene.ts";
import { gitServer } from "./git-server.ts";

const many = 50;

test(
  "fifty Stacks of one repository and credentials share each poll; a new commit reaches all of them",
  async () => {
    using server = gitServer();
    const first = server.commit();
    await using scene = await StackScene.open();
    const names = Array.from({ length: many }, (_, index) => `web-${index}`);
    const polls = (): number => server.requests.filter((path) => path.endsWith("/git-upload-pack")).length;
    const startedAt = performance.now();
    /** On a busy machine, fifty updates may take longer than the interval, after which the repository is polled again. */
    const delayedPolls = (): number => Math.floor((performance.now() - startedAt) / 50_000);
    await Promise.all(names.map((name) => scene.stack(name, { projectRepo: server.url, branch: "main" })));
    await Promise.all(names.map((name) => scene.isReady(name, first)));
    // The second poll is at a random time within the interval, which may have come.
    expect(polls()).toBeLessThanOrEqual(2 + delayedPolls());

    const second = server.commit();
    scene.jump(64_000);
    await Promise.all(names.map((name) => scene.isReady(name, second)));
    expect(polls()).toBeLessThanOrEqual(4 + delayedPolls());
    expect(scene.runs.filter((run) => run === `up@${second}`)).toHaveLength(many);
  },
  testTimeoutMs * 2,
);
