import { describe, expect, test } from "bun:test";
import { existsSync, lstatSync, mkdirSync, readlinkSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseOptions } from "../options.ts";
import { PulumiCli } from "../pulumi/cli.ts";
import { SignIn } from "../pulumi/cloud/sign-in.ts";
import { SecretStore } from "../pulumi/project/secrets.ts";
import { createLog } from "../system/log.ts";
import { Redactor } from "../system/redact.ts";
import { temporaryFolder } from "../testing/folders.ts";
import { StateFile, type WorkspaceState } from "./state.ts";
import { prepareWorkspace } from "./steps.ts";

class BrokenCli extends PulumiCli {
  override async version(): Promise<never> {
    throw new Error("broken");
  }
}

function workspace() {
  const options = parseOptions(["--share", realpathSync(temporaryFolder())], {});
  const redactor = new Redactor();
  const logged: string[] = [];
  const log = createLog(redactor, (line) => logged.push(line));
  const signIn = new SignIn({ oidc: undefined, redactor, log });
  const { state: folder } = options.paths;
  const prepare = async (state = new StateFile(folder)) => {
    const context = {
      options,
      inherited: {},
      cli: new BrokenCli({ file: "pulumi", state: folder, inherited: {}, redactor, signIn }),
      secrets: new SecretStore(),
      state,
      log,
      signal: new AbortController().signal,
      onPhase: () => undefined,
      preparation: "first",
    };
    const files = { "Pulumi.yaml": "name: demo\nruntime: yaml\n" };
    const stack = { name: "dev", create: true, config: [], environments: [] };
    return await prepareWorkspace({ source: { kind: "files", files }, stacks: [stack] }, context).catch(String);
  };
  return { paths: options.paths, logged, prepare };
}

test("a preparation that fails unexpectedly waits for all of its work", async () => {
  const { paths, logged, prepare } = workspace();
  expect(await prepare()).toBe("Error: broken");
  // The checkout has completed.
  expect(logged.join("")).toContain("source checked out");
  expect(existsSync(join(paths.source, "Pulumi.yaml"))).toBe(true);
  expect(readlinkSync(paths.workspace)).toBe(paths.source);
});

describe("the working directory", () => {
  test("is not a link into the checkout while that is replaced", async () => {
    const { paths, prepare } = workspace();
    mkdirSync(join(paths.source, "old"), { recursive: true });
    symlinkSync(join(paths.source, "old"), paths.workspace);
    const during: boolean[] = [];
    class WatchedState extends StateFile {
      override async write(state: WorkspaceState): Promise<void> {
        // The record of the source is removed right before the swap.
        if (!state.source && existsSync(`${paths.source}.next`)) during.push(lstatSync(paths.workspace).isDirectory());
        await super.write(state);
      }
    }
    await prepare(new WatchedState(paths.state));
    expect(during).toEqual([true]);
    expect(readlinkSync(paths.workspace)).toBe(paths.source);
  });

  const content = (path: string): void => {
    mkdirSync(path);
    writeFileSync(join(path, "Pulumi.yaml"), "name: old");
  };

  test("replaces the checkout of an earlier agent version", async () => {
    const { paths, prepare } = workspace();
    content(paths.workspace);
    const source = { key: "k", revision: "abc", folder: paths.workspace };
    await new StateFile(paths.state).write({ source });
    await prepare();
    expect(readlinkSync(paths.workspace)).toBe(paths.source);
    expect(existsSync(`${paths.workspace}.old`)).toBe(false);
  });

  test("keeps the files of an init container", async () => {
    const { paths, logged, prepare } = workspace();
    content(paths.workspace);
    const source = { key: "k", revision: `local:${paths.workspace}`, folder: paths.workspace };
    await new StateFile(paths.state).write({ source });
    await prepare();
    expect(existsSync(join(paths.workspace, "Pulumi.yaml"))).toBe(true);
    expect(lstatSync(paths.workspace).isDirectory()).toBe(true);
    expect(logged.join("")).toContain("cannot link the working directory, because it is not empty");
  });
});
