/** A common interface for every kind of source: a revision, and a tree that is written to an empty folder. */
import { isAbsolute, join } from "node:path";
import type { Source } from "@pko/rpc";
import { done, failed, type Outcome } from "../outcome.ts";
import { jsonDigest } from "../system/digest.ts";
import { isDirectory } from "../system/files.ts";
import { parseFiles, projectFiles, sortedByName, writeFiles, type InlineFiles } from "./files.ts";
import { fetchFlux } from "./flux.ts";
import { fetchGit, type GitContext } from "./git.ts";

export interface Tree {
  readonly kind: "tree";
  readonly revision: string;
  /** Identifies the files, whatever the revision: a commit that changes none has the same. */
  readonly contents: string;
  /** Writes the tree to an empty folder. May also fetch it. */
  write(folder: string): Promise<Outcome<undefined>>;
  /** Called after the folder was moved into place. */
  settle(): Promise<void>;
}

interface LocalFolder {
  readonly kind: "folder";
  readonly revision: string;
  /** Used in place. */
  readonly folder: string;
}

type Obtained = Tree | LocalFolder;

const localPrefix = "local:";

/** Whether a revision is that of a folder that is used in place. */
export const isLocal = (revision: string): boolean => revision.startsWith(localPrefix);

export async function obtainSource(source: Source, context: GitContext): Promise<Outcome<Obtained>> {
  switch (source.kind) {
    case "git": {
      const fetched = await fetchGit(source, context);
      if (!fetched.ok) return fetched;
      const { value } = fetched;
      return done({
        kind: "tree",
        revision: value.commit,
        contents: `git:${value.tree}`,
        write: (folder) => value.checkout(folder),
        settle: () => value.settle(),
      });
    }
    case "flux":
      return done({
        kind: "tree",
        revision: source.digest,
        contents: `flux:${source.digest}`,
        async write(folder) {
          const archive = join(context.state, "artifact.tar.gz");
          const fetched = await fetchFlux(source, folder, { archive, ...context });
          return fetched.ok ? done(undefined) : fetched;
        },
        settle: async () => undefined,
      });
    case "files":
      return inlineTree(parseFiles(source));
    case "project":
      return inlineTree(projectFiles(source));
    case "local":
      if (!isAbsolute(source.dir) || source.dir.split("/").includes("..") || source.dir.includes("\0")) {
        return failed("sourceInvalid", 'the local folder is not an absolute path without ".."; correct it');
      }
      if (!(await isDirectory(source.dir))) {
        return failed(
          "sourceNotFound",
          `there is no folder ${source.dir} in the workspace; add it to the image, or create it in an init container or a volume`,
        );
      }
      return done({ kind: "folder", revision: `${localPrefix}${source.dir}`, folder: source.dir });
  }
}

function inlineTree(inline: Outcome<InlineFiles>): Outcome<Obtained> {
  if (!inline.ok) return inline;
  const { value } = inline;
  return done({
    kind: "tree",
    revision: value.revision,
    contents: `files:${jsonDigest(sortedByName(value.files))}`,
    write: (folder) => writeFiles(value, folder),
    settle: async () => undefined,
  });
}

/**
 * Identifies a source: if the key is the same, the existing tree can be used. Undefined if the source must be queried, as
 * for a branch. Credentials are not part of the key.
 */
export function sourceKey(source: Source): string | undefined {
  switch (source.kind) {
    case "git":
      if (source.commit === undefined) return undefined;
      return jsonDigest([source.kind, source.url, source.commit.toLowerCase(), source.shallow !== false]);
    case "flux":
      return jsonDigest([source.kind, source.url, source.digest]);
    case "files":
      return jsonDigest([source.kind, source.revision ?? "", sortedByName(Object.entries(source.files))]);
    case "project":
      return jsonDigest([source.kind, source.name, source.runtime]);
    case "local":
      return jsonDigest([source.kind, source.dir]);
  }
}

/** The project's folder within the source. */
export function sourceDir(source: Source): string {
  return (source.kind === "git" || source.kind === "flux" ? source.dir : undefined) ?? ".";
}
