/** A program whose files are in the request, and a minimal project with only a name and a runtime. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { FilesSource, ProjectSource } from "@pko/rpc";
import { stringify } from "yaml";
import { done, failed, type Outcome } from "../outcome.ts";
import { quoteName } from "../system/clean-text.ts";
import { jsonDigest } from "../system/digest.ts";
import { normalizeRelative } from "../system/files.ts";

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
    const path = normalizeRelative(name);
    if (path === undefined || path === "." || path.split("/").includes(".git")) {
      return failed(
        "sourceInvalid",
        `${quoteName(name, 100)} is not a valid path within the program; use a relative path without ".." or ".git"`,
      );
    }
    if (files.has(path)) return failed("sourceInvalid", `the program has the file ${path} twice`);
    files.set(path, text);
  }
  return done({ revision: source.revision ?? `sha256:${jsonDigest(sortedByName(files))}`, files });
}

/** For a stack whose source no longer exists: the project that the CLI needs to destroy it. */
export function projectFiles(source: ProjectSource): Outcome<InlineFiles> {
  if (!projectName.test(source.name))
    return failed("sourceInvalid", "the project's name contains characters that are not allowed");
  if (!projectName.test(source.runtime))
    return failed("sourceInvalid", "the project's runtime contains characters that are not allowed");
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
      return failed(
        "sourceInvalid",
        `the file ${path} cannot be written; check for another file with the name of one of its folders`,
      );
    }
  }
  return done(undefined);
}

export function sortedByName(entries: Iterable<readonly [string, string]>): (readonly [string, string])[] {
  return [...entries].toSorted(([a], [b]) => (a < b ? -1 : 1));
}
