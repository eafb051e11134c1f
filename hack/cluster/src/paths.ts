/** Folders: the cache of build results is outside the clone; the state of a running cluster is one folder in it. */
import { homedir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dir, "../../..");

export const repositoryRoot = root;

/** Its entries are keyed by version, so that several clones can share it. */
export const cacheRoot =
  process.env["PKO_CACHE"] ??
  join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "pulumi-kubernetes-operator");

export const stateRoot = resolve(process.env["CLUSTER_STATE"] ?? join(root, ".cluster"));
