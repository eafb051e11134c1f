/** The suites of `make test`, their files, and what each needs before it can run. */
import { Glob } from "bun";
import { dirname, join, relative, resolve } from "node:path";

export const repositoryRoot = join(import.meta.dir, "../..");

/**
 * One `bun test` process. Jobs run in parallel, except those that disturb the shared cluster.
 */
export interface Job {
  readonly name: string;
  readonly files: readonly string[];
  readonly suite: SuiteName;
  /** Restarts or kills parts of the cluster, or installs the operator for all of it. */
  readonly isExclusive: boolean;
}

export interface Suite {
  readonly folders: readonly string[];
  /** What shares a process: an API server starts once per process, and end-to-end files share only the cluster. */
  readonly jobPer: "suite" | "folder" | "file";
  /** Folders with slow files that need no server: each file is a job. */
  readonly splitFolders?: readonly string[];
  /** Folders that are one job together, by its name. */
  readonly joinedFolders?: Readonly<Record<string, readonly string[]>>;
  /** Programs that must be built first. */
  readonly tools: readonly string[];
  /** "own": it starts and stops clusters itself. "shared": it runs on the cluster of the whole run. */
  readonly cluster?: "own" | "shared";
}

const packageNames = [
  "api",
  "install",
  "git",
  "forge",
  "process",
  "kube",
  "records",
  "rpc",
  "agent",
  "operator",
  "cli",
  "console",
];
const packages = packageNames.map((name) => `packages/${name}`);
const inIntegration = (...names: readonly string[]): string[] => names.map((name) => `test/integration/${name}`);
const clusterPrograms = ["kubectl", "kube", "pulumi", "pulumi-language-yaml", "pulumi-language-nodejs"];

export const suiteNames = ["unit", "integration", "cluster", "e2e"] as const;
export type SuiteName = (typeof suiteNames)[number];

export const suites: Readonly<Record<SuiteName, Suite>> = {
  unit: {
    folders: [
      ...packages,
      "hack",
      "bench",
      "test/docs",
      "test/fuzz",
      "test/logs",
      "test/mutants",
      "test/rights",
      "test/runner",
      "test/simulation",
    ],
    jobPer: "suite",
    tools: [],
  },
  integration: {
    folders: ["packages/testkit", "test/integration", "test/faults"],
    jobPer: "folder",
    splitFolders: ["test/integration/agent"],
    // To start an API server with our API takes four seconds of CPU.
    joinedFolders: {
      "test/integration/kube": ["packages/testkit/src", ...inIntegration("kube")],
      "test/integration/workspaces": inIntegration("agents", "ca", "ownership", "skew", "slots"),
      "test/integration/api": inIntegration("api", "cli"),
      "test/integration/messages": inIntegration(
        "alerts",
        "approvals",
        "notification",
        "pull-requests",
        "report",
        "webhooks",
      ),
    },
    // Helm and Argo CD render the chart and run the health checks, and docs mention their commands. promtool and Prometheus test the alerts.
    tools: [
      ...clusterPrograms,
      "quick-pulumi",
      "pulumi-language-go",
      "pulumi-language-python",
      "language-host",
      "pulumi-resource-kubernetes",
      "helm",
      "argocd",
      "gitea",
      "promtool",
      "prometheus",
    ],
  },
  cluster: { folders: ["test/cluster"], jobPer: "suite", tools: clusterPrograms, cluster: "own" },
  e2e: {
    folders: ["test/e2e"],
    jobPer: "file",
    tools: ["kubectl", "argocd", "helm", "source-controller", "versitygw", "pulumi-resource-kubernetes"],
    cluster: "shared",
  },
};

/** End-to-end files that disturb the shared cluster: each runs alone on it, before the others. */
const exclusiveFiles: ReadonlySet<string> = new Set([
  "test/e2e/demo/demo.test.ts",
  "test/e2e/install/deploy.test.ts",
  "test/e2e/install/quickstart.test.ts",
  // The streams of `kubectl exec` and `kubectl logs` go through the kubelet.
  "test/e2e/operator/kubelet-crash.test.ts",
]);

/** What takes longest starts first, so that no single job is left running at the end. */
const longestJobs: readonly string[] = [
  "test/integration/stack",
  "test/integration/update",
  "test/integration/agent/plans.test.ts",
  "test/integration/docs",
  "test/faults",
  "test/integration/console",
  "test/integration/workspace",
  "test/integration/workspaces",
  "test/integration/messages",
  "test/integration/programs",
  "test/integration/install",
  "test/integration/operator",
  "test/integration/api",
  "test/integration/kube",
  "test/integration/agent/timeouts.test.ts",
  "test/integration/agent/lifecycle.test.ts",
  "test/e2e/languages/languages.test.ts",
  "test/e2e/examples/examples.test.ts",
  "test/e2e/operator/lost-node.test.ts",
  "test/e2e/control/timeouts.test.ts",
  "test/e2e/install/chart.test.ts",
  "test/e2e/control/drift.test.ts",
  "test/e2e/inputs/environment.test.ts",
  "test/e2e/install/reinstall.test.ts",
  "test/e2e/argocd/argo-cd.test.ts",
  "test/e2e/sources/flux.test.ts",
  "test/e2e/inputs/backends.test.ts",
  "test/e2e/operator/crashes.test.ts",
];

export async function jobsIn(suite: SuiteName): Promise<Job[]> {
  const groups = Map.groupBy(await testFiles(suites[suite].folders), (file) => jobName(suite, file));
  const jobs = Array.from(groups, ([name, files]) => ({ name, files, suite, isExclusive: exclusiveFiles.has(name) }));
  return jobs.toSorted((a, b) => place(a) - place(b));
}

function jobName(suite: SuiteName, file: string): string {
  const { jobPer, splitFolders = [], joinedFolders = {} } = suites[suite];
  if (jobPer === "suite") return suite;
  const folder = dirname(file);
  if (jobPer === "file" || splitFolders.includes(folder)) return file;
  const joined = Object.entries(joinedFolders).find(([, folders]) => folders.includes(folder));
  return joined?.[0] ?? folder;
}

function place({ name }: Job): number {
  const at = longestJobs.indexOf(name);
  return at < 0 ? longestJobs.length : at;
}

async function testFiles(folders: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const folder of folders) {
    const glob = new Glob("**/*.test.ts");
    for await (const file of glob.scan({ cwd: join(repositoryRoot, folder) })) {
      if (!file.includes("node_modules/")) found.push(join(folder, file));
    }
  }
  return found.toSorted();
}

/** The job for a single file, with the setup of its suite. */
export async function jobFor(path: string): Promise<Job | undefined> {
  const file = relative(repositoryRoot, resolve(repositoryRoot, path));
  for (const suite of suiteNames) {
    const job = (await jobsIn(suite)).find(({ files }) => files.includes(file));
    if (job) return { ...job, name: file, files: [file] };
  }
  return undefined;
}
