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
import type { Project } from "../pulumi/project/project.ts";
import { createLog } from "../system/log.ts";
import { Redactor } from "../system/redact.ts";
import { temporaryFolder } from "../testing/folders.ts";
import { linkWorkspace, createWorkspaceFolder, recoverWorkspaceLink, shareSelection } from "./shell.ts";

const root = realpathSync(temporaryFolder());
const logged: string[] = [];
const log = createLog(new Redactor(), (line) => logged.push(line));

function createFolder(name: string): string {
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

test("the working directory links to the project, also after it moved to another folder", async () => {
  const workspace = createFolder("one/workspace");
  for (const dir of ["one/source/a", "one/source/b"]) {
    const folder = createFolder(dir);
    await linkWorkspace(workspace, folder, log);
    expect(readlinkSync(workspace)).toBe(folder);
  }
});

test("an error is logged like one of the operator: with its code and stack trace", async () => {
  const lines: string[] = [];
  const file = join(createFolder("file"), "file");
  writeFileSync(file, "");
  const workspace = join(file, "workspace");
  await linkWorkspace(
    workspace,
    createFolder("file/source"),
    createLog(new Redactor(), (line) => lines.push(line)),
  );
  const error: unknown = expect.objectContaining({ code: "ENOTDIR", stack: expect.any(String) as unknown });
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    expect.objectContaining({ msg: "cannot link the working directory", folder: workspace, error }) as unknown,
  ]);
});

test("the working directory stays if an init container created it", async () => {
  const workspace = createFolder("two/workspace");
  writeFileSync(join(workspace, "Pulumi.yaml"), "name: demo");
  await linkWorkspace(workspace, workspace, log);
  await linkWorkspace(workspace, createFolder("two/workspace/infra"), log);
  expect(logged).toEqual([]);
  // Another source does not replace it either.
  await linkWorkspace(workspace, createFolder("two/source"), log);
  expect(existsSync(join(workspace, "Pulumi.yaml"))).toBe(true);
  expect(logged.splice(0).join("")).toContain("cannot link the working directory, because it is not empty");
});

describe("a working directory after a restart", () => {
  const isEmptyFolder = (path: string): boolean => lstatSync(path).isDirectory();

  test("is never a dangling link", async () => {
    const workspace = join(createFolder("five"), "workspace");
    for (const prepared of [undefined, join(root, "five/missing")]) {
      symlinkSync(join(root, "five/missing"), workspace);
      await recoverWorkspaceLink(workspace, prepared, log);
      expect(isEmptyFolder(workspace)).toBe(true);
      rmdirSync(workspace);
    }
    await recoverWorkspaceLink(workspace, undefined, log);
    expect(existsSync(workspace)).toBe(false);
  });

  test("links to the prepared project, and a valid link stays", async () => {
    const workspace = createFolder("six/workspace");
    const folder = createFolder("six/source");
    for (const prepared of [folder, undefined]) {
      await recoverWorkspaceLink(workspace, prepared, log);
      expect(readlinkSync(workspace)).toBe(folder);
    }
  });

  test("is an empty folder for the containers of a new pod, or the folder that an init container created", async () => {
    const linked = join(createFolder("seven"), "linked");
    symlinkSync(root, linked);
    for (const path of [linked, join(root, "seven/new")]) {
      await createWorkspaceFolder(path, log);
      expect(isEmptyFolder(path)).toBe(true);
    }
    const own = createFolder("seven/own");
    writeFileSync(join(own, "Pulumi.yaml"), "name: demo");
    await createWorkspaceFolder(own, log);
    expect(existsSync(join(own, "Pulumi.yaml"))).toBe(true);
    expect(logged).toEqual([]);
  });
});

test("the CLI's selection is copied for the paths of a shell, if the CLI has written one", async () => {
  const project = projectIn(createFolder("three/source"));
  const env = { PULUMI_HOME: createFolder("three/home") };
  const selection = { env, project, agentProjectFile: "/own/Pulumi.yaml", workspace: "/share/workspace", log };
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
