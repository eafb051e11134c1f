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
    // A poll is one request for the ref advertisement, and one for the refs.
    const polls = (): number => server.requests.filter((path) => path.endsWith("/info/refs")).length;
    await Promise.all(names.map((name) => scene.stack(name, { projectRepo: server.url, branch: "main" })));
    await Promise.all(names.map((name) => scene.isReady(name, first)));
    expect(polls()).toBe(1);

    const second = server.commit();
    scene.jump(64_000);
    await Promise.all(names.map((name) => scene.isReady(name, second)));
    expect(polls()).toBe(2);
    expect(scene.runs.filter((run) => run === `up@${second}`)).toHaveLength(many);
  },
  testTimeoutMs * 2,
);
