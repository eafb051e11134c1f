/** Every kind of source behind one face: a revision, and a tree that is written into an empty folder. */
import { createHash } from "node:crypto";
import { isAbsolute, join } from "node:path";
import { assertNever, type Source } from "@pko/rpc";
import { done, failed, type Outcome } from "../outcome.ts";
import { isDirectory } from "../system/files.ts";
import { parseFiles, projectFiles, sortedByName, writeFiles, type InlineFiles } from "./files.ts";
import { fetchFlux } from "./flux.ts";
import { fetchGit, type GitContext } from "./git.ts";

export interface Tree {
  readonly kind: "tree";
  readonly revision: string;
  /** Fills an empty folder. May be where the fetching happens. */
  write(folder: string): Promise<Outcome<undefined>>;
  /** Called once the folder is in its place. */
  settle(): Promise<void>;
}

interface Place {
  readonly kind: "place";
  readonly revision: string;
  /** Used where it is. */
  readonly folder: string;
}

type Obtained = Tree | Place;

const localPrefix = "local:";

/** Whether a revision is that of a folder that is used where it is. */
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
        write: (folder) => value.checkout(folder),
        settle: () => value.settle(),
      });
    }
    case "flux":
      return done({
        kind: "tree",
        revision: source.digest,
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
        return failed("sourceInvalid", "the local folder is not an absolute path");
      }
      if (!(await isDirectory(source.dir))) {
        return failed(
          "sourceNotFound",
          `there is no folder ${source.dir}: neither the image brings it, nor an init container or a volume`,
        );
      }
      return done({ kind: "place", revision: `${localPrefix}${source.dir}`, folder: source.dir });
    default:
      return assertNever(source);
  }
}

function inlineTree(inline: Outcome<InlineFiles>): Outcome<Obtained> {
  if (!inline.ok) return inline;
  const { value } = inline;
  return done({
    kind: "tree",
    revision: value.revision,
    write: (folder) => writeFiles(value, folder),
    settle: async () => undefined,
  });
}

/**
 * What tells one source from another: when it is the same, the tree that is there is the one that was asked for.
 * Undefined where only asking can tell, as for a branch. Credentials open a source and are no part of it.
 */
export function sourceKey(source: Source): string | undefined {
  switch (source.kind) {
    case "git":
      if (source.commit === undefined) return undefined;
      return keyOf([source.kind, source.url, source.commit.toLowerCase(), source.shallow !== false]);
    case "flux":
      return keyOf([source.kind, source.url, source.digest]);
    case "files":
      return keyOf([source.kind, source.revision ?? "", sortedByName(Object.entries(source.files))]);
    case "project":
      return keyOf([source.kind, source.name, source.runtime]);
    case "local":
      return keyOf([source.kind, source.dir]);
    default:
      return assertNever(source);
  }
}

/** The project's folder within the source. */
export function sourceDir(source: Source): string {
  return (source.kind === "git" || source.kind === "flux" ? source.dir : undefined) ?? ".";
}

function keyOf(parts: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}
