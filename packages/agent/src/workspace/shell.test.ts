import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmdirSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Project } from "../pulumi/project.ts";
import { createLog } from "../system/log.ts";
import { Redactor } from "../system/redact.ts";
import { temporaryFolder } from "../testing/folders.ts";
import { linkWorkspace, makeWorkspaceFolder, recoverWorkspaceLink, shareSelection } from "./shell.ts";

const root = realpathSync(temporaryFolder());
const logged: string[] = [];
const log = createLog(new Redactor(), (line) => logged.push(line));

function folderOf(name: string): string {
  mkdirSync(join(root, name), { recursive: true });
  return join(root, name);
}

function projectIn(folder: string): Project {
  return {
    name: "demo",
    runtime: "yaml",
    folder,
    file: join(folder, "Pulumi.yaml"),
    settingsFolder: folder,
    virtualenv: undefined,
    backendUrl: undefined,
    dependencies: { runtime: "yaml", packages: undefined, plugins: undefined },
  };
}

test("the working directory follows the project, also into another folder", async () => {
  const workspace = folderOf("one/workspace");
  for (const dir of ["one/source/a", "one/source/b"]) {
    const folder = folderOf(dir);
    await linkWorkspace(workspace, folder, log);
    expect(readlinkSync(workspace)).toBe(folder);
  }
});

test("the working directory stays what an init container made it", async () => {
  const workspace = folderOf("two/workspace");
  writeFileSync(join(workspace, "Pulumi.yaml"), "name: demo");
  await linkWorkspace(workspace, workspace, log);
  await linkWorkspace(workspace, folderOf("two/workspace/infra"), log);
  expect(logged).toEqual([]);
  // A source besides it does not take its place either.
  await linkWorkspace(workspace, folderOf("two/source"), log);
  expect(existsSync(join(workspace, "Pulumi.yaml"))).toBe(true);
  expect(logged.splice(0).join("")).toContain("working directory not linked: it has other content");
});

describe("a working directory after a restart", () => {
  const isEmptyFolder = (path: string): boolean => lstatSync(path).isDirectory();

  test("is never a link to nothing", async () => {
    const workspace = join(folderOf("five"), "workspace");
    for (const prepared of [undefined, join(root, "five/missing")]) {
      symlinkSync(join(root, "five/missing"), workspace);
      await recoverWorkspaceLink(workspace, prepared, log);
      expect(isEmptyFolder(workspace)).toBe(true);
      rmdirSync(workspace);
    }
    await recoverWorkspaceLink(workspace, undefined, log);
    expect(existsSync(workspace)).toBe(false);
  });

  test("is linked to what is prepared, and stays a link that works", async () => {
    const workspace = folderOf("six/workspace");
    const folder = folderOf("six/source");
    for (const prepared of [folder, undefined]) {
      await recoverWorkspaceLink(workspace, prepared, log);
      expect(readlinkSync(workspace)).toBe(folder);
    }
  });

  test("is an empty folder for the containers of a new pod, or what an earlier init container made it", async () => {
    const linked = join(folderOf("seven"), "linked");
    symlinkSync(root, linked);
    for (const path of [linked, join(root, "seven/new")]) {
      await makeWorkspaceFolder(path, log);
      expect(isEmptyFolder(path)).toBe(true);
    }
    const own = folderOf("seven/own");
    writeFileSync(join(own, "Pulumi.yaml"), "name: demo");
    await makeWorkspaceFolder(own, log);
    expect(existsSync(join(own, "Pulumi.yaml"))).toBe(true);
    expect(logged).toEqual([]);
  });
});

test("the CLI's selection is repeated for the paths of a shell, and only where the CLI has made one", async () => {
  const project = projectIn(folderOf("three/source"));
  const env = { PULUMI_HOME: folderOf("three/home") };
  const selection = { env, project, selectedBeside: "/own/Pulumi.yaml", workspace: "/share/workspace", log };
  const fileFor = (path: string): string => {
    const hash = createHash("sha1").update(path).digest("hex");
    return join(env.PULUMI_HOME, "workspaces", `demo-${hash}-workspace.json`);
  };
  await shareSelection(selection);
  expect(existsSync(fileFor(project.file))).toBe(false);
  mkdirSync(join(env.PULUMI_HOME, "workspaces"));
  writeFileSync(fileFor("/own/Pulumi.yaml"), '{"stack":"dev"}');
  await shareSelection(selection);
  for (const path of [project.file, "/share/workspace/Pulumi.yaml"]) {
    expect(readFileSync(fileFor(path), "utf8")).toBe('{"stack":"dev"}');
  }
});
