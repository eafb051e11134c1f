/** Updates on several stacks of one Workspace: one runs at a time. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { waitFor } from "@pko/testkit";

import type { FakeAgent } from "./fake-agent.ts";
import { UpdateScene } from "./scene.ts";

setDefaultTimeout(180_000);

const succeeded = { Progressing: "False/Complete", Failed: "False/UpdateSucceeded", Complete: "True/Updated" };

async function runStarted(agent: FakeAgent, runId: string): Promise<void> {
  await waitFor(() => agent.started.includes(runId), { what: "the run to start" });
}

describe("Updates in one Workspace", () => {
  const cases = {
    "that lists both of their stacks": { stacks: [{ name: "dev" }, { name: "prod" }] },
    "that lists no stacks": {},
  };
  for (const [what, spec] of Object.entries(cases)) {
    test(`${what} run one after the other, each on its own stack`, async () => {
      await using scene = await UpdateScene.open();
      const agent = await scene.workspace("web", spec);
      scene.operator();
      const first = await scene.update("a-first", { stackName: "prod" });
      await runStarted(agent, first);
      const second = await scene.update("b-second", { stackName: "dev", type: "preview" });
      await scene.until("b-second", { Progressing: "False/WorkspaceNotReady" });
      expect(agent.started).toEqual([first]);
      agent.finish(first);
      await scene.until("a-first", succeeded);
      await runStarted(agent, second);
      agent.finish(second);
      await scene.until("b-second", succeeded);
      expect([agent.requestOf(first).stack, agent.requestOf(second).stack]).toEqual(["prod", "dev"]);
    });
  }

  test("that lists no stacks: one on a stack that does not exist fails with the reason, and blocks no other", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web");
    scene.operator();
    const typo = await scene.update("a-typo", { stackName: "dve" });
    await runStarted(agent, typo);
    const right = await scene.update("b-right");
    const message =
      "the stack does not exist, and the operator creates only stacks that the Workspace lists with create: true";
    agent.finish(typo, { outcome: "failed", error: { class: "stackNotFound", message, lines: [] } });
    const done = await scene.until("a-typo", { Failed: "True/UpdateFailed", Complete: "True/UpdateFailed" });
    expect(done.status).toMatchObject({ message, errorClass: "stackNotFound" });
    await runStarted(agent, right);
    agent.finish(right);
    await scene.until("b-right", succeeded);
  });

  test("that lists stacks: one on a stack that is not listed ends before a request to its pod", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web", { stacks: [{ name: "dev" }, { name: "prod" }] });
    scene.operator();
    await scene.update("other", { stackName: "test" });
    const done = await scene.until("other", { Failed: "True/Failed", Complete: "True/Failed" });
    expect(done.status?.message).toContain("the Workspace web has no stack test, only dev, prod");
    expect(agent.calls.get("start")).toBeUndefined();
  });
});
