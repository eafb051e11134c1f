/** Finds the project file as the CLI does, but never above the source, and reads the parts that the agent needs. */
import { readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parse } from "yaml";
import { done, failed, type Outcome } from "../../outcome.ts";
import { isInside, readIfExists, resolveInside } from "../../system/files.ts";

export interface Project {
  readonly name: string;
  readonly runtime: string;
  readonly folder: string;
  /** The project file. Settings files have the same extension. */
  readonly file: string;
  /** The folder with the settings files of stacks. */
  readonly settingsFolder: string;
  readonly virtualenv: string | undefined;
  readonly backendUrl: string | undefined;
  /** The parts of the project file that determine the dependencies. */
  readonly dependencies: { readonly runtime: unknown; readonly packages: unknown; readonly plugins: unknown };
}

const fileNames = ["Pulumi.yaml", "Pulumi.yml", "Pulumi.json"];
const maxFileBytes = 8 * 1024 * 1024;
const maxNameChars = 200;

/** `folder` is inside `root`, and both are real paths without links. */
export async function loadProject(folder: string, root: string): Promise<Outcome<Project>> {
  const file = await findProjectFile(folder, root);
  if (file === undefined)
    return failed(
      "projectInvalid",
      "there is no Pulumi.yaml in the project's folder; check the folder in the spec and the program's files",
    );
  if ((await stat(file)).size > maxFileBytes)
    return failed("projectInvalid", `Pulumi.yaml is larger than ${maxFileBytes} bytes`);
  const text = (await readIfExists(file)) ?? "";
  let content: unknown;
  try {
    content = parse(text, { logLevel: "error" });
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split("\n", 1)[0] ?? "") : "";
    return failed("projectInvalid", `Pulumi.yaml is not valid YAML: ${reason}`);
  }
  return await readProject(content, file, root);
}

async function readProject(content: unknown, file: string, root: string): Promise<Outcome<Project>> {
  const name = entry(content, "name");
  if (typeof name !== "string" || name === "") return failed("projectInvalid", "Pulumi.yaml has no name; add one");
  if (name.length > maxNameChars)
    return failed("projectInvalid", `the project's name in Pulumi.yaml is longer than ${maxNameChars} characters`);
  const runtime = entry(content, "runtime");
  const runtimeName = typeof runtime === "string" ? runtime : entry(runtime, "name");
  if (typeof runtimeName !== "string" || runtimeName === "" || runtimeName.length > maxNameChars) {
    return failed("projectInvalid", "Pulumi.yaml has no valid runtime; add one, for example nodejs or yaml");
  }
  const folder = dirname(file);
  const settings = await findSettingsFolder(content, folder, root);
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

/** `stackConfigDir` is relative to the project. It may point outside the project, but not outside the source. */
async function findSettingsFolder(content: unknown, folder: string, root: string): Promise<Outcome<string>> {
  // Before 3.x `stackConfigDir` was named `config`.
  const config = entry(content, "config");
  const configured = asText(entry(content, "stackConfigDir")) ?? asText(config);
  if (configured === undefined) return done(folder);
  const target = join(folder, configured);
  if (!isInside(root, target))
    return failed("projectInvalid", "stackConfigDir in Pulumi.yaml points outside the source; use a folder within it");
  const real = await resolveInside(root, target.slice(root.length).replace(/^\/+/, "") || ".");
  if (real.ok) return done(real.path);
  if (real.problem === "missing") return done(target);
  return failed("projectInvalid", "stackConfigDir in Pulumi.yaml points outside the source; use a folder within it");
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
