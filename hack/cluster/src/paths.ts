/** Where things are kept: what is built once outlives the clone; what a running cluster writes is one folder in it. */
import { homedir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dir, "../../..");

export const repositoryRoot = root;

/** Keyed by version inside, so several checkouts of different ages share it. */
export const cacheRoot =
  process.env["PKO_CACHE"] ??
  join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "pulumi-kubernetes-operator");

export const stateRoot = resolve(process.env["CLUSTER_STATE"] ?? join(root, ".cluster"));
