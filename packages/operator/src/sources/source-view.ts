/** A Stack's source as the Stack's controller sees it: one form for Git, Flux, Programs and folders in an image. */
import type { WorkspaceSpec } from "@pko/api";

/** The part of a Workspace's spec that says where the program comes from. */
export type SourceSpec = Pick<WorkspaceSpec, "git" | "flux" | "local" | "program">;

export type SourceTrouble =
  /** The repository refuses the credentials, or there are none to be had. */
  | "auth"
  /** The repository, the Flux object or the Program is not there. */
  | "notFound"
  | "branchMissing"
  /** The network, a server that is down: it may work the next time. */
  | "unreachable"
  /** An address, a transport or a host key that we do not use. */
  | "refused"
  /** A Flux object that has no artifact yet, or says that it has failed. */
  | "notReady";

export type SourceView =
  /** Nobody has looked yet; whoever asked is woken. */
  | { readonly kind: "pending"; readonly what: string }
  | {
      readonly kind: "ready";
      /** What people know it by. Empty for sources that have none. */
      readonly revision: string;
      /** What identifies the content, whatever its revision is called; undefined where the revision does. */
      readonly digest?: string;
      /** Names that another operator, or this one in its earlier days, may have given to this same revision. */
      readonly aliases: readonly string[];
      readonly spec: SourceSpec;
      /** What keeps it from being followed, as a clause. */
      readonly warning?: string;
    }
  | { readonly kind: "unavailable"; readonly trouble: SourceTrouble; readonly message: string };

export const unavailable = (trouble: SourceTrouble, message: string): SourceView => ({
  kind: "unavailable",
  trouble,
  message,
});
