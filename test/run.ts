/** Runs the test suites one after the other, with what each needs around it, and sums up what they report. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

interface Suite {
  readonly folders: readonly string[];
  /** Programs that have to be built before. */
  readonly tools: readonly string[];
  /** Whether it runs on the local cluster, or the one that CLUSTER_KUBECONFIG names. */
  readonly onCluster?: true;
}

interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

const packages = ["api", "git", "kube", "rpc", "agent", "operator"].map((name) => `packages/${name}`);

const programs = ["kube", "pulumi", "pulumi-language-yaml", "pulumi-language-nodejs"];

const suites: Record<string, Suite> = {
  unit: { folders: [...packages, "hack", "bench", "test/docs"], tools: [] },
  // The commands of the pages are checked with the programs themselves.
  integration: {
    folders: ["packages/testkit", "test/integration", "test/faults"],
    tools: [...programs, "pulumi-language-go", "helm"],
  },
  // Starts and kills the local cluster again and again.
  cluster: { folders: ["test/cluster"], tools: programs },
  e2e: { folders: ["test/e2e"], tools: ["argocd", "helm", "source-controller", "versitygw"], onCluster: true },
};

const root = join(import.meta.dir, "..");
const cluster = [process.execPath, join(root, "hack/cluster/src/main.ts")];

async function main(names: readonly string[]): Promise<boolean> {
  const reports = await mkdtemp(join(tmpdir(), "pko-tests-"));
  let total: Counts = { passed: 0, failed: 0, skipped: 0 };
  let ok = await succeeds([...cluster, "packages"]);
  if (!ok) return false;
  try {
    for (const name of names.length > 0 ? names : Object.keys(suites)) {
      const suite = suites[name];
      if (suite === undefined) throw new Error(`no suite named ${name}: choose from ${Object.keys(suites).join(", ")}`);
      const report = join(reports, `${name}.xml`);
      const succeeded = await runSuite(name, suite, report);
      const counts = await readCounts(report);
      // A suite that died without a report, or ran nothing, has not passed.
      ok &&= succeeded && counts.passed > 0;
      total = add(total, counts);
    }
  } finally {
    await rm(reports, { recursive: true, force: true });
  }
  console.log(`${total.passed} passed, ${total.failed} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ""}`);
  return ok && total.failed === 0;
}

async function runSuite(name: string, suite: Suite, report: string): Promise<boolean> {
  console.log(`\n── ${name} tests`);
  const reporter = ["--reporter=junit", `--reporter-outfile=${report}`];
  const tests = [process.execPath, "test", "--timeout=60000", ...reporter, ...suite.folders];
  if (!(await succeeds([...cluster, "tools", ...suite.tools]))) return false;
  return suite.onCluster ? await aroundCluster(() => succeeds(tests)) : await succeeds(tests);
}

/** A new cluster, so that what someone left in an old one changes nothing; a given one is taken as it is. */
async function aroundCluster(work: () => Promise<boolean>): Promise<boolean> {
  try {
    return (await succeeds([...cluster, "down"])) && (await succeeds([...cluster, "up"])) && (await work());
  } finally {
    await succeeds([...cluster, "down"]);
  }
}

async function succeeds(command: readonly string[]): Promise<boolean> {
  const child = Bun.spawn([...command], { cwd: root, stdin: "ignore", stdout: "inherit", stderr: "inherit" });
  return (await child.exited) === 0;
}

async function readCounts(report: string): Promise<Counts> {
  const text = await readFile(report, "utf8").catch(() => "");
  const [head = ""] = /<testsuites[^>]*>/.exec(text) ?? [];
  const read = (attribute: string): number => Number(new RegExp(` ${attribute}="(\\d+)"`).exec(head)?.[1] ?? 0);
  const [failed, skipped] = [read("failures"), read("skipped")];
  return { passed: read("tests") - failed - skipped, failed, skipped };
}

function add(a: Counts, b: Counts): Counts {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped };
}

process.exit((await main(process.argv.slice(2))) ? 0 : 1);
