import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readlinkSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseOptions } from "../options.ts";
import type { Project } from "../pulumi/project.ts";
import { createLog } from "../system/log.ts";
import { Redactor } from "../system/redact.ts";
import { temporaryFolder } from "../testing/folders.ts";
import { linkPulumiHome, linkWorkspace, shareSelection } from "./shell.ts";

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
    const project = projectIn(folderOf(dir));
    await linkWorkspace(workspace, project, log);
    expect(readlinkSync(workspace)).toBe(project.folder);
  }
});

test("the working directory stays what an init container made it", async () => {
  const workspace = folderOf("two/workspace");
  writeFileSync(join(workspace, "Pulumi.yaml"), "name: demo");
  await linkWorkspace(workspace, projectIn(workspace), log);
  await linkWorkspace(workspace, projectIn(folderOf("two/workspace/infra")), log);
  expect(logged).toEqual([]);
  // A source besides it does not take its place either.
  await linkWorkspace(workspace, projectIn(folderOf("two/source")), log);
  expect(existsSync(join(workspace, "Pulumi.yaml"))).toBe(true);
  expect(logged.splice(0).join("")).toContain("working directory not linked: it has other content");
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

test("PULUMI_HOME is the CLI's folder of the user, or one on the volume where the user has none", async () => {
  const options = parseOptions(["--share", folderOf("four/share")], {});
  const { pulumiHome, state } = options.paths;
  const home = folderOf("four/home");
  writeFileSync(join(root, "four/file"), "");
  const cases = [
    [home, join(home, ".pulumi")],
    [join(root, "four/file"), join(state, "home/.pulumi")],
  ] as const;
  for (const [HOME, target] of cases) {
    await linkPulumiHome(options, { HOME, PULUMI_HOME: pulumiHome }, log);
    expect(readlinkSync(pulumiHome)).toBe(target);
    expect(existsSync(target)).toBe(true);
  }
  // One of the user's own is left alone.
  const other = parseOptions(["--share", folderOf("four/other")], {});
  await linkPulumiHome(other, { HOME: home, PULUMI_HOME: "/mine" }, log);
  expect(existsSync(other.paths.pulumiHome)).toBe(false);
});
