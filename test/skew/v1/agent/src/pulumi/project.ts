/** The project file: found as the CLI finds it, but never above the source, and read for what the agent needs of it. */
import { readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parse } from "yaml";
import { done, failed, type Outcome } from "../outcome.ts";
import { isInside, readIfThere, resolveInside } from "../system/files.ts";

export interface Project {
  readonly name: string;
  readonly runtime: string;
  readonly folder: string;
  /** With its extension, which the settings files share. */
  readonly file: string;
  /** Where the settings files of stacks are. */
  readonly settingsFolder: string;
  readonly virtualenv: string | undefined;
  readonly backendUrl: string | undefined;
  /** What of the project file decides which dependencies are installed. */
  readonly dependencies: { readonly runtime: unknown; readonly packages: unknown; readonly plugins: unknown };
}

const fileNames = ["Pulumi.yaml", "Pulumi.yml", "Pulumi.json"];
const maxFileBytes = 8 * 1024 * 1024;
const maxNameChars = 200;

/** `folder` is real and inside `root`, which is real too. */
export async function loadProject(folder: string, root: string): Promise<Outcome<Project>> {
  const file = await findProjectFile(folder, root);
  if (file === undefined) return failed("projectInvalid", "there is no Pulumi.yaml in the project's folder");
  if ((await stat(file)).size > maxFileBytes) return failed("projectInvalid", "Pulumi.yaml is too large");
  const text = (await readIfThere(file)) ?? "";
  let content: unknown;
  try {
    content = parse(text, { logLevel: "error" });
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split("\n", 1)[0] ?? "") : "";
    return failed("projectInvalid", `Pulumi.yaml cannot be read: ${reason}`);
  }
  return await readProject(content, file, root);
}

async function readProject(content: unknown, file: string, root: string): Promise<Outcome<Project>> {
  const name = entry(content, "name");
  if (typeof name !== "string" || name === "") return failed("projectInvalid", "Pulumi.yaml has no name");
  if (name.length > maxNameChars) return failed("projectInvalid", "the project's name is too long");
  const runtime = entry(content, "runtime");
  const runtimeName = typeof runtime === "string" ? runtime : entry(runtime, "name");
  if (typeof runtimeName !== "string" || runtimeName === "" || runtimeName.length > maxNameChars) {
    return failed("projectInvalid", "Pulumi.yaml has no runtime");
  }
  const folder = dirname(file);
  const settings = await settingsFolderOf(content, folder, root);
  if (!settings.ok) return settings;
  return done({
    name,
    runtime: runtimeName,
    folder,
    file,
    settingsFolder: settings.value,
    virtualenv: asText(entry(entry(runtime, "options"), "virtualenv")),
    backendUrl: asText(entry(entry(content, "backend"), "url")),
    dependencies: { runtime, packages: entry(content, "packages"), plugins: entry(content, "plugins") },
  });
}

/** `stackConfigDir` is relative to the project, and may point beside it, but not out of the source. */
async function settingsFolderOf(content: unknown, folder: string, root: string): Promise<Outcome<string>> {
  // Before 3.x `config` was what is now `stackConfigDir`.
  const config = entry(content, "config");
  const configured = asText(entry(content, "stackConfigDir")) ?? asText(config);
  if (configured === undefined) return done(folder);
  const target = join(folder, configured);
  if (!isInside(root, target)) return failed("projectInvalid", "stackConfigDir leads out of the source");
  const real = await resolveInside(root, target.slice(root.length).replace(/^\/+/, "") || ".");
  if (real.ok) return done(real.path);
  if (real.problem === "missing") return done(target);
  return failed("projectInvalid", "stackConfigDir leads out of the source");
}

async function findProjectFile(folder: string, root: string): Promise<string | undefined> {
  for (let at = folder; isInside(root, at); at = dirname(at)) {
    const names = await readdir(at);
    const name = fileNames.find((candidate) => names.includes(candidate));
    if (name !== undefined) {
      const real = await resolveInside(root, join(at, name).slice(root.length).replace(/^\/+/, ""));
      return real.ok ? join(at, name) : undefined;
    }
    if (at === dirname(at)) break;
  }
  return undefined;
}

export function entry(value: unknown, key: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
  return Reflect.get(value, key);
}

function asText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
