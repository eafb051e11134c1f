import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../testing/folders.ts";
import { StateFile } from "./state.ts";

const project = { name: "demo", runtime: "yaml" };
const source = { key: "k", revision: "1", folder: "/share/workspace" };

async function readState(content: unknown): Promise<unknown> {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "state.json"), JSON.stringify(content));
  return await new StateFile(folder).read();
}

describe("the state of a workspace", () => {
  test("is read by the next agent", async () => {
    const folder = temporaryFolder();
    const state = {
      source,
      installed: "nothing",
      selected: [{ stack: "dev", key: "k1" }],
      ready: {
        revision: "1",
        project,
        projectFolder: "/share/workspace/app",
        root: "/share/workspace",
        stacks: [
          { name: "dev", settings: "/share/agent/stacks/a/settings.yaml" },
          { name: "prod", settings: "/share/agent/stacks/b/settings.yaml" },
        ],
      },
    };
    await new StateFile(folder).write(state);
    expect(await new StateFile(folder).read()).toEqual(state);
  });

  test("of an agent for a single stack is upgraded", async () => {
    const ready = { revision: "1", project, projectFolder: "/share/workspace", backend: "file:///state" };
    const settings = "/share/agent/stacks/a/settings.yaml";
    const selected = { key: "k1", warning: "careful" };
    expect(
      await readState({ source, installed: "nothing", selected, ready: { ...ready, stack: "dev", settings } }),
    ).toEqual({
      source,
      installed: "nothing",
      selected: [{ stack: "dev", key: "k1", warning: "careful" }],
      ready: { ...ready, root: "/share/workspace", stacks: [{ name: "dev", settings }] },
    });
  });

  test("of an unprepared agent for a single stack keeps its source but not its selection", async () => {
    expect(await readState({ source, installed: "nothing", selected: { key: "k1" } })).toEqual({
      source,
      installed: "nothing",
    });
  });

  test("in an unknown format is empty", async () => {
    expect(await readState({ source: 7 })).toEqual({});
    expect(await readState("invalid")).toEqual({});
  });
});
