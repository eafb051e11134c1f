/** A program whose files came with the request, and the least of a project: a name and a runtime. */
import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { FilesSource, ProjectSource } from "../../../rpc/src/index.ts";
import { stringify } from "yaml";
import { done, failed, type Outcome } from "../outcome.ts";
import { quoteName } from "../system/clean-text.ts";
import { cleanRelative } from "../system/files.ts";

const maxFiles = 2_000;
const projectName = /^[A-Za-z0-9_.-]{1,100}$/;

export interface InlineFiles {
  readonly revision: string;
  readonly files: ReadonlyMap<string, string>;
}

export function parseFiles(source: FilesSource): Outcome<InlineFiles> {
  const entries = Object.entries(source.files);
  if (entries.length > maxFiles) return failed("sourceInvalid", `the program has more than ${maxFiles} files`);
  const files = new Map<string, string>();
  for (const [name, text] of entries) {
    const path = cleanRelative(name);
    if (path === undefined || path === "." || path.split("/").includes(".git")) {
      return failed("sourceInvalid", `${quoteName(name, 100)} is not a path within the program`);
    }
    if (files.has(path)) return failed("sourceInvalid", `the program has the file ${path} twice`);
    files.set(path, text);
  }
  const digest = createHash("sha256")
    .update(JSON.stringify(sortedByName(files)))
    .digest("hex");
  return done({ revision: source.revision ?? `sha256:${digest}`, files });
}

/** For a stack whose source is gone: what the CLI needs to know of the project to destroy it. */
export function projectFiles(source: ProjectSource): Outcome<InlineFiles> {
  if (!projectName.test(source.name)) return failed("sourceInvalid", "the project's name is not a name");
  if (!projectName.test(source.runtime)) return failed("sourceInvalid", "the project's runtime is not a name");
  const project = stringify({ name: source.name, runtime: source.runtime });
  return done({ revision: `project:${source.name}`, files: new Map([["Pulumi.yaml", project]]) });
}

export async function writeFiles(inline: InlineFiles, folder: string): Promise<Outcome<undefined>> {
  for (const [path, text] of inline.files) {
    const target = join(folder, path);
    try {
      await mkdir(dirname(target), { recursive: true });
      await writeFile(target, text);
    } catch {
      return failed("sourceInvalid", `the file ${path} cannot be written: another file is in its way`);
    }
  }
  return done(undefined);
}

export function sortedByName(entries: Iterable<readonly [string, string]>): (readonly [string, string])[] {
  return [...entries].toSorted(([a], [b]) => (a < b ? -1 : 1));
}
