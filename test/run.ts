/** Runs the test suites one after the other, with what each needs around it, and sums up what they report. */
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

interface Suite {
  readonly folders: readonly string[];
  /** Programs that have to be built before. */
  readonly tools: readonly string[];
  /** Starts and ends clusters itself: what takes minutes the first time is made before. */
  readonly startsClusters?: true;
  /** Whether it runs on the local cluster, or the one that CLUSTER_KUBECONFIG names. */
  readonly onCluster?: true;
}

interface Report {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** What did not pass and why, to be told once more at the end: the way back through the output is long. */
  readonly failures: readonly string[];
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
  cluster: { folders: ["test/cluster"], tools: programs, startsClusters: true },
  e2e: { folders: ["test/e2e"], tools: ["argocd", "helm", "source-controller", "versitygw"], onCluster: true },
};

const root = join(import.meta.dir, "..");
const cluster = [process.execPath, join(root, "hack/cluster/src/main.ts")];

async function main(names: readonly string[]): Promise<boolean> {
  let total: Report = { passed: 0, failed: 0, skipped: 0, failures: [] };
  let ok = await succeeds([...cluster, "packages"]);
  if (!ok) return false;
  const folder = await mkdtemp(join(tmpdir(), "pko-tests-"));
  // As /tmp is: some tests are other users.
  await chmod(folder, 0o1777);
  try {
    for (const name of names.length > 0 ? names : Object.keys(suites)) {
      const suite = suites[name];
      if (suite === undefined) throw new Error(`no suite named ${name}: choose from ${Object.keys(suites).join(", ")}`);
      const report = join(folder, `${name}.xml`);
      const succeeded = await runSuite(name, suite, { report, temporary: folder });
      const result = await readReport(report);
      // A suite that died without a report, or ran nothing, has not passed.
      const isFine = succeeded && result.passed > 0;
      if (!isFine && result.failed === 0) total = add(total, lost(name));
      ok &&= isFine;
      total = add(total, result);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  for (const failure of total.failures) console.log(`\n✗ ${failure}`);
  console.log(`${total.passed} passed, ${total.failed} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ""}`);
  return ok && total.failed === 0;
}

interface Places {
  readonly report: string;
  /** Whatever a test leaves there goes with the run. */
  readonly temporary: string;
}

async function runSuite(name: string, suite: Suite, { report, temporary }: Places): Promise<boolean> {
  console.log(`\n── ${name} tests`);
  const reporter = ["--reporter=junit", `--reporter-outfile=${report}`];
  const tests = [process.execPath, "test", "--timeout=60000", ...reporter, ...suite.folders];
  if (!(await succeeds([...cluster, "tools", ...suite.tools]))) return false;
  if (suite.startsClusters && !process.env["CLUSTER_KUBECONFIG"] && !(await succeeds([...cluster, "prepare"])))
    return false;
  const run = (): Promise<boolean> => succeeds(tests, { TMPDIR: temporary });
  return suite.onCluster ? await aroundCluster(run) : await run();
}

/** A new cluster, so that what someone left in an old one changes nothing; a given one is taken as it is. */
async function aroundCluster(work: () => Promise<boolean>): Promise<boolean> {
  try {
    return (await succeeds([...cluster, "down"])) && (await succeeds([...cluster, "up"])) && (await work());
  } finally {
    await succeeds([...cluster, "down"]);
  }
}

async function succeeds(command: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<boolean> {
  const child = Bun.spawn([...command], {
    cwd: root,
    env: { ...process.env, ...env },
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
  });
  return (await child.exited) === 0;
}

async function readReport(path: string): Promise<Report> {
  const text = await readFile(path, "utf8").catch(() => "");
  const [head = ""] = /<testsuites[^>]*>/.exec(text) ?? [];
  const [failed, skipped] = [numberIn(head, "failures"), numberIn(head, "skipped")];
  const failures = [...text.matchAll(/(<testcase [^>]*[^/]>)\s*(<failure [^>]*>)/g)].map(
    ([, test = "", failure = ""]) => {
      const place = `${textIn(test, "file")}:${textIn(test, "line")}`;
      return `${place} ${textIn(test, "name")}\n  ${textIn(failure, "message").trim().replaceAll("\n", "\n  ")}`;
    },
  );
  return { passed: numberIn(head, "tests") - failed - skipped, failed, skipped, failures };
}

const lost = (name: string): Report => ({
  passed: 0,
  failed: 1,
  skipped: 0,
  failures: [`the ${name} tests ended without a result, or with an error between tests: see their output`],
});

const numberIn = (tag: string, attribute: string): number => Number(textIn(tag, attribute) || 0);

function textIn(tag: string, attribute: string): string {
  const [, escaped = ""] = new RegExp(` ${attribute}="([^"]*)"`).exec(tag) ?? [];
  const named: Readonly<Record<string, string>> = {
    "&lt;": "<",
    "&gt;": ">",
    "&quot;": '"',
    "&apos;": "'",
    "&#10;": "\n",
  };
  return escaped.replaceAll(/&(?:lt|gt|quot|apos|#10);/g, (entity) => named[entity] ?? entity).replaceAll("&amp;", "&");
}

function add(a: Report, b: Report): Report {
  return {
    passed: a.passed + b.passed,
    failed: a.failed + b.failed,
    skipped: a.skipped + b.skipped,
    failures: [...a.failures, ...b.failures],
  };
}

process.exit((await main(process.argv.slice(2))) ? 0 : 1);
