/** Fifty Stacks that follow one repository: counted at the Git server. */
import { expect, test } from "bun:test";

import { patience, Stage } from "./harness.ts";
import { gitServer } from "./git-server.ts";

const many = 50;

test(
  "fifty Stacks of one repository and credentials are one poll each time; a new commit reaches all of them",
  async () => {
    using server = gitServer();
    const first = server.commit();
    await using stage = await Stage.set();
    const names = Array.from({ length: many }, (_, index) => `web-${index}`);
    // A look is one request for the refs' advertisement, and one for those that were asked for.
    const looks = (): number => server.requests.filter((path) => path.endsWith("/info/refs")).length;
    await Promise.all(names.map((name) => stage.stack(name, { projectRepo: server.url, branch: "main" })));
    await Promise.all(names.map((name) => stage.isReady(name, first)));
    expect(looks()).toBe(1);

    const second = server.commit();
    stage.jump(64_000);
    await Promise.all(names.map((name) => stage.isReady(name, second)));
    expect(looks()).toBe(2);
    expect(stage.runs.filter((run) => run === `up@${second}`)).toHaveLength(many);
  },
  patience * 2,
);
