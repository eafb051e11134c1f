/** What cannot be tested on a cluster of the user (CLUSTER_KUBECONFIG), and why. Pure. */
import type { Job } from "./suites.ts";

export interface OtherCluster {
  /** An address of this machine that pods can reach (MACHINE_ADDRESS). This machine must be able to reach pods, too. */
  readonly machineAddress: string | undefined;
  /** A workspace image that contains the SDK of Node.js (WORKSPACE_IMAGE). */
  readonly workspaceImage: string | undefined;
}

/** Tests in other files that need the local cluster call `localTest`. */
const localFiles: ReadonlyMap<string, string> = new Map([
  ["test/e2e/classes/classes.test.ts", publishesImage("an image with a policy pack")],
  ["test/e2e/cluster/workspace-image.test.ts", "it tests the workspace image that is built here"],
  ["test/e2e/examples/examples.test.ts", publishesImage("the example's image")],
  ["test/e2e/inputs/cluster-then-apps.test.ts", publishesImage("an image with kubectl")],
  ["test/e2e/languages/languages.test.ts", publishesImage("an image with the packages of each language")],
  ["test/e2e/sources/git.test.ts", publishesImage("an image with an SSH server")],
  ["test/e2e/operator/kubelet-crash.test.ts", "it kills the kubelet"],
  ["test/e2e/operator/lost-node.test.ts", "it starts a second node and stops it like a power failure"],
]);

function publishesImage(what: string): string {
  return `it publishes ${what}, which only the local cluster pulls from this machine`;
}

/** Files whose programs are in JavaScript. */
const javascriptFiles: ReadonlySet<string> = new Set([
  "test/e2e/argocd/argo-cd.test.ts",
  "test/e2e/cli/runs.test.ts",
  "test/e2e/console/console.test.ts",
  "test/e2e/control/deletion.test.ts",
  "test/e2e/control/drift.test.ts",
  "test/e2e/control/suspend.test.ts",
  "test/e2e/control/timeouts.test.ts",
  "test/e2e/inputs/backends.test.ts",
  "test/e2e/inputs/configuration.test.ts",
  "test/e2e/inputs/environment.test.ts",
  "test/e2e/operator/crashes.test.ts",
  "test/e2e/operator/safeguards.test.ts",
  "test/e2e/operator/scenarios.test.ts",
  "test/e2e/operator/shell.test.ts",
]);

/** Files whose operator runs in the cluster, and whose sources are in it. */
const remoteFiles: ReadonlySet<string> = new Set([
  "test/e2e/demo/demo.test.ts",
  "test/e2e/install/deploy.test.ts",
  "test/e2e/install/quickstart.test.ts",
  "test/e2e/install/reinstall.test.ts",
]);

/** Every file that the lists mention. */
export const listedFiles: readonly string[] = [...localFiles.keys(), ...javascriptFiles, ...remoteFiles];

/** Why the job is skipped there; undefined if it can run. */
export function skipReason({ name, suite }: Job, cluster: OtherCluster): string | undefined {
  if (suite === "cluster") return "it starts, kills and stops the local cluster";
  if (suite !== "e2e") return undefined;
  const reason = localFiles.get(name);
  if (reason !== undefined) return reason;
  if (remoteFiles.has(name)) return undefined;
  if (!cluster.machineAddress)
    return "its operator and servers run on this machine: set MACHINE_ADDRESS to an address that pods can reach, if this machine can reach pods";
  if (!javascriptFiles.has(name) || cluster.workspaceImage) return undefined;
  return "its programs are in JavaScript: set WORKSPACE_IMAGE to a workspace image that contains the SDK";
}
