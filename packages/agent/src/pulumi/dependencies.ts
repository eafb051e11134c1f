/** The program's dependencies: installed when what names them has changed, and carried from one checkout to the next. */
import { createHash } from "node:crypto";
import { access, constants, mkdir, readdir, readFile, rename } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { done, failed, type Outcome } from "../outcome.ts";
import { lastLines, linesOf } from "../system/clean-text.ts";
import { cleanOutput } from "../system/command.ts";
import { cleanRelative, isDirectory, isInside, readIfThere } from "../system/files.ts";
import type { Log } from "../system/log.ts";
import type { PulumiCli } from "./cli.ts";
import { quoteProgram } from "./program-lines.ts";
import { entry, type Project } from "./project.ts";

/** Manifests and lockfiles of the languages, and what configures their package managers. */
const manifests = new Set([
  "package.json",
  "package-lock.json",
  "npm-shrinkwrap.json",
  "yarn.lock",
  "pnpm-lock.yaml",
  "pnpm-workspace.yaml",
  "bun.lock",
  "bun.lockb",
  ".npmrc",
  ".yarnrc",
  ".yarnrc.yml",
  "requirements.txt",
  "pyproject.toml",
  "poetry.lock",
  "poetry.toml",
  "uv.lock",
  "setup.py",
  "setup.cfg",
  "Pipfile",
  "Pipfile.lock",
  ".python-version",
  "go.mod",
  "go.sum",
  "go.work",
  "go.work.sum",
  "pom.xml",
  "build.gradle",
  "build.gradle.kts",
  "settings.gradle",
  "settings.gradle.kts",
  "gradle.lockfile",
  "packages.lock.json",
  "nuget.config",
  "global.json",
  "PulumiPlugin.yaml",
]);
const manifestEndings = [".csproj", ".fsproj", ".vbproj"];

const installTimeoutMs = 30 * 60_000;

/** Tells one set of dependencies from another; undefined when there is nothing to install. */
export async function dependencyKey(project: Project, root: string): Promise<string | undefined> {
  const { packages, plugins } = project.dependencies;
  // The CLI fetches the plugins of a YAML program itself when it runs.
  if (project.runtime === "yaml" && packages === undefined && plugins === undefined) return undefined;
  // One that is compiled already needs neither its modules nor the compiler that would fetch them.
  if (entry(entry(project.dependencies.runtime, "options"), "binary") !== undefined) return undefined;
  const hash = createHash("sha256").update(JSON.stringify(project.dependencies));
  // Up to the top of the source: a lockfile of a monorepo lies above the project.
  for (let folder = project.folder; isInside(root, folder); folder = dirname(folder)) {
    const names = (await readdir(folder)).filter(isManifest).toSorted((a, b) => (a < b ? -1 : 1));
    for (const name of names) {
      hash.update(JSON.stringify([relative(root, folder), name]));
      hash.update(await readFile(join(folder, name)).catch(() => ""));
    }
    if (folder === dirname(folder)) break;
  }
  return hash.digest("hex");
}

function isManifest(name: string): boolean {
  return manifests.has(name) || manifestEndings.some((ending) => name.endsWith(ending));
}

interface Install {
  readonly project: Project;
  readonly cli: PulumiCli;
  readonly log: Log;
  readonly signal: AbortSignal;
}

export async function installDependencies({ project, cli, log, signal }: Install): Promise<Outcome<undefined>> {
  const end = await cli.run({ args: ["install"], cwd: project.folder, timeoutMs: installTimeoutMs, signal });
  if (end.kind === "exited" || end.kind === "timedOut") {
    for (const line of linesOf(cleanOutput(end, cli.redactor))) log.printed(line);
  }
  if (end.kind === "exited" && end.code === 0) return done(undefined);
  if (end.kind === "aborted") return failed("superseded", "a newer request took over");
  if (end.kind === "missing") return failed("toolMissing", "the workspace's image has no `pulumi`");
  const message = end.kind === "timedOut" ? "the installation did not finish in time" : "`pulumi install` failed";
  const file = cli.redactor.clean((await readIfThere(join(project.folder, "Pulumi.yaml"))) ?? "");
  return failed("installFailed", message, quoteProgram(lastLines(cleanOutput(end, cli.redactor), 30), file));
}

/** Whether a fresh checkout lacks what was installed in the last one; others keep it in a cache of the user's. */
export function installsIntoCheckout(project: Project): boolean {
  return (
    project.dependencies.packages !== undefined ||
    project.runtime === "nodejs" ||
    project.runtime === "bun" ||
    project.runtime === "python"
  );
}

/** Folders that an installation fills. */
function installedFolders(project: Project): string[] {
  const virtualenv = project.virtualenv === undefined ? undefined : cleanRelative(project.virtualenv);
  // Of packages, the CLI keeps what programs need to know of them in `sdks`.
  return ["node_modules", "venv", ".venv", "sdks", ...(virtualenv && virtualenv !== "." ? [virtualenv] : [])];
}

/**
 * Moves what was installed in the old checkout into the new one, where the next installation starts from it. Returns
 * what was moved, relative to the checkout.
 */
export async function carryOver(project: Project, from: string, to: string): Promise<readonly string[]> {
  const carried: string[] = [];
  for (const folder of new Set([relative(to, project.folder), ""])) {
    for (const name of installedFolders(project)) {
      const path = join(folder, name);
      const [source, target] = [join(from, path), join(to, path)];
      if (!(await isDirectory(source)) || (await isDirectory(target))) continue;
      await mkdir(dirname(target), { recursive: true });
      await rename(source, target);
      carried.push(path);
    }
  }
  return carried;
}

export async function isWritableFolder(folder: string): Promise<boolean> {
  try {
    await access(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
