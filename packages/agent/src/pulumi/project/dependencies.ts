/** Installs the program's dependencies when a manifest has changed, and carries them over to the next checkout. */
import { createHash } from "node:crypto";
import { access, constants, mkdir, readdir, readFile, rename } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { done, failed, type Outcome } from "../../outcome.ts";
import { lastLines, nonEmptyLines } from "../../system/clean-text.ts";
import { cleanOutput } from "../../system/command.ts";
import { normalizeRelative, isDirectory, isInside, readIfExists } from "../../system/files.ts";
import type { Log } from "../../system/log.ts";
import { noPulumi, type PulumiCli } from "../cli.ts";
import { quoteProgram } from "../program-lines.ts";
import { entry, type Project } from "./project.ts";

/** Manifests, lockfiles and package manager settings of the languages. */
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

/** Identifies a set of dependencies; undefined if there is nothing to install. */
export async function dependencyKey(project: Project, root: string): Promise<string | undefined> {
  const { packages, plugins } = project.dependencies;
  // The CLI fetches the plugins of a YAML program itself when it runs.
  if (project.runtime === "yaml" && packages === undefined && plugins === undefined) return undefined;
  // A compiled program needs neither its modules nor a compiler to fetch them.
  if (entry(entry(project.dependencies.runtime, "options"), "binary") !== undefined) return undefined;
  const hash = createHash("sha256").update(JSON.stringify(project.dependencies));
  // Up to the root of the source, because a monorepo's lockfile is above the project.
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
    for (const line of nonEmptyLines(cleanOutput(end, cli.redactor))) log.printed(line);
  }
  if (end.kind === "exited" && end.code === 0) return done(undefined);
  if (end.kind === "aborted") return failed("superseded", "a newer request replaced this one");
  if (end.kind === "missing") return failed("toolMissing", noPulumi);
  const message =
    end.kind === "timedOut"
      ? `\`pulumi install\` did not finish within ${installTimeoutMs / 60_000} minutes`
      : "`pulumi install` failed";
  const file = cli.redactor.clean((await readIfExists(join(project.folder, "Pulumi.yaml"))) ?? "");
  return failed("installFailed", message, quoteProgram(lastLines(cleanOutput(end, cli.redactor), 30), file));
}

/** Whether dependencies are installed into the checkout, so that a new checkout lacks them; others use a cache. */
export function installsIntoCheckout(project: Project): boolean {
  return (
    project.dependencies.packages !== undefined ||
    project.runtime === "nodejs" ||
    project.runtime === "bun" ||
    project.runtime === "python"
  );
}

/** Folders that an installation writes to. */
function installedFolders(project: Project): string[] {
  const virtualenv = project.virtualenv === undefined ? undefined : normalizeRelative(project.virtualenv);
  // The CLI writes the SDKs of packages to `sdks`.
  return ["node_modules", "venv", ".venv", "sdks", ...(virtualenv && virtualenv !== "." ? [virtualenv] : [])];
}

/**
 * Moves installed dependencies from the old checkout to the new one, so that the next installation is incremental.
 * Returns the moved folders, relative to the checkout.
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
