/** The source of a Stack, in one form for Git, Flux, Programs and folders in an image. */
import type { WorkspaceSpec } from "@pko/api";

/** The part of a Workspace's spec that names the source of the program. */
export type SourceSpec = Pick<WorkspaceSpec, "git" | "flux" | "local" | "program">;

export type SourceProblem =
  /** The repository rejects the credentials, or there are none. */
  | "auth"
  /** The repository, the Flux object or the Program does not exist. */
  | "notFound"
  | "branchMissing"
  /** A network or server problem, which may be temporary. */
  | "unreachable"
  /** An address, transport or host key that the operator does not use. */
  | "refused"
  /** A Flux object that has no artifact yet, or has failed. */
  | "notReady";

/** Two commits of a repository. */
export interface CommitPair {
  readonly from: string;
  readonly to: string;
}

/** The files that differ between the revision and an earlier one. */
export interface ChangedPaths {
  /** The last successful revision. */
  readonly since: string;
  readonly paths: readonly string[];
}

export interface Uncompared {
  /** The last successful revision. */
  readonly since: string;
  /** The commit may be a later one, whose selected files are the same. */
  readonly compareWith: CompareWith;
}

export type CompareWith = NonNullable<NonNullable<WorkspaceSpec["git"]>["compareWith"]>;

export type SourceView =
  /** Not read yet: the Stack is woken when it is. */
  | { readonly kind: "pending"; readonly what: string }
  | {
      readonly kind: "ready";
      /** As users know it. Empty for sources without one. */
      readonly revision: string;
      /** Identifies the content; undefined if the revision does. */
      readonly digest?: string;
      /** Other names that the Go operator, or an earlier version, may have recorded for this revision. */
      readonly aliases: readonly string[];
      readonly spec: SourceSpec;
      /** For a Stack with path filters; absent if it is not known, or no commit was compared. */
      readonly changes?: ChangedPaths;
      /** For a Stack with path filters: the operator cannot compare the revision, so its workspace does. */
      readonly uncompared?: Uncompared;
      /**
       * Whether the revision has the content of the commit for which a plan was made that is not applied yet; absent if it is that
       * commit, if it has another content, or if that cannot be known.
       */
      readonly contentOfPlan?: "same" | "uncompared";
      /** Why the revision cannot be compared with the commit of the plan, as a clause. While it is uncompared, that is repeated. */
      readonly contentProblem?: string;
      /** Why newer revisions cannot be read, as a clause. */
      readonly warning?: string;
    }
  | { readonly kind: "unavailable"; readonly problem: SourceProblem; readonly message: string };

export const unavailable = (problem: SourceProblem, message: string): SourceView => ({
  kind: "unavailable",
  problem,
  message,
});
