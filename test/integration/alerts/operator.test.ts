/**
 * A real operator, with its metrics read over HTTP: a healthy one raises no alert, and workspaces without pods, denied
 * requests and a standby without a leader raise theirs.
 */
import { builtin, silentLogger, type Credentials } from "@pko/kube";
import { workspaces } from "@pko/operator";
import { waitFor } from "@pko/testkit";
import { expect, test } from "bun:test";

import { operator } from "../../../packages/operator/src/operator.ts";
import { parseOptions } from "../../../packages/operator/src/options.ts";
import { gitServer } from "../stack/git-server.ts";
import { reasonOf, StackScene, testTimeoutMs } from "../stack/scene.ts";
import { release, renderRules, testRules, type Series } from "./promtool.ts";
import { recordedSeries, type Scrape } from "./recorded-series.ts";

/** What the metrics show lasts for so long. */
const held = { interval: "10m", intervals: 30, at: "4h" };
/** Long enough for the operator's certificate to expire in less than a week, if nothing renews it. */
const unattended = { interval: "12h", intervals: 60, at: "25d" };
/** As rarely as an operator in trouble retries an object. */
const longestBackoff = { interval: "5m", intervals: 30, at: "2h" };

interface Running extends AsyncDisposable {
  readonly scrape: () => Promise<Scrape>;
}

async function start(namespace: string, credentials: Credentials): Promise<Running> {
  const flags = ["--leader-elect", `--namespace=${namespace}`, `--watch-namespaces=${namespace}`, "--agent-image=none"];
  const addresses = ["--probe-address=127.0.0.1:0", "--metrics-address=127.0.0.1:0"];
  const options = parseOptions([...flags, ...addresses, "--allow-http", "--allow-addresses=127.0.0.1"], {});
  const manager = await operator({ options, credentials, log: silentLogger });
  const stop = new AbortController();
  const running = manager.run(stop.signal);
  await waitFor(() => manager.ready().ok, { what: "the operator to be ready", timeoutMs: testTimeoutMs / 2 });
  const scrape = async (): Promise<Scrape> => {
    const response = await fetch(`http://127.0.0.1:${manager.ports.metrics}/metrics`);
    return { text: await response.text(), atMs: Date.now() };
  };
  return {
    scrape,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}

const leads = async ({ scrape }: Running): Promise<boolean> =>
  /^leader_election_master_status\{.*\} 1$/m.test((await scrape()).text);

const failedPolls = /^git_polls_total\{.*result="(?:auth|unreachable|refused)"\} (\d+)$/gm;
const deniedRequests = /^rest_client_requests_total\{.*code="403".*\} (\d+)$/gm;
const reconcileErrors = /^controller_runtime_reconcile_errors_total\{.*\} (\d+)$/gm;

const total = ({ text }: Scrape, counter: RegExp): number =>
  [...text.matchAll(counter)].reduce((sum, [, count]) => sum + Number(count), 0);

/**
 * The metrics when each of these counters is higher than before. A server knows of a request earlier: the operator counts
 * it after the response, and the error that it causes after the pass.
 */
async function grown({ scrape }: Running, before: Scrape, counters: readonly RegExp[]): Promise<Scrape> {
  const attempt = async (): Promise<Scrape | undefined> => {
    const now = await scrape();
    return counters.every((counter) => total(now, counter) > total(before, counter)) ? now : undefined;
  };
  return await waitFor(attempt, { what: `growth of ${counters.join(" and ")}`, timeoutMs: 90_000 });
}

interface Recorded {
  readonly scrapes: readonly [Scrape, Scrape];
  readonly repeated?: typeof held;
  /** Series of other replicas. */
  readonly others?: Series;
}

async function expectAlerts(
  name: string,
  { scrapes, repeated: { interval, intervals, at } = held, others = {} }: Recorded,
  firing: Readonly<Record<string, number>>,
): Promise<void> {
  const series = { ...recordedSeries(scrapes, intervals), ...others };
  await testRules(await renderRules(), [{ name, series, at, firing, exactly: true }], interval);
}

test(
  "a healthy operator raises no alert; without a leader, permissions or new certificates it does",
  async () => {
    await using scene = await StackScene.open("without operator");
    const { proxy } = await scene.proxy();
    await using running = await start(scene.namespace, proxy.credentials);
    await waitFor(async () => await leads(running), { what: "the operator to lead", timeoutMs: testTimeoutMs / 2 });
    const metrics = [
      /^operator_build_info\{version="\d+\.\d+\.\d+.*",bun="[\d.]+"\} 1$/m,
      /^certificate_expiry_timestamp_seconds\{certificate="ca"\} \d{10}$/m,
      /^certificate_expiry_timestamp_seconds\{certificate="operator"\} \d{10}$/m,
      /^workspaces\{state="scaledToZero"\} 0$/m,
      /^workqueue_oldest_age_seconds\{name="stack-controller",controller="stack-controller"\} /m,
      /^reflector_objects\{reflector="updates"\} 0$/m,
      /^update_records_limit_bytes \d+$/m,
    ];
    // The controllers start a moment after the operator leads.
    const complete = async (): Promise<Scrape> => {
      const found = await running.scrape();
      for (const metric of metrics) expect(found.text).toMatch(metric);
      return found;
    };
    const scrape = await waitFor(complete, { what: "the metrics of an operator that leads" });
    await expectAlerts("healthy", { scrapes: [scrape, await running.scrape()] }, {});
    const unrenewed = { scrapes: [scrape, scrape], repeated: unattended } as const;
    await expectAlerts("certificates that are not renewed", unrenewed, { PulumiCertificateExpiring: 1 });
    const off = (text: string, metric: string): string =>
      text.replace(new RegExp(`^(${metric}\\{.*\\}) 1$`, "m"), "$1 0");
    const standby = { ...scrape, text: off(scrape.text, "leader_election_master_status") };
    const others = { [`up{namespace="${release}",job="${release}",pod="operator-1"}`]: `0+0x${held.intervals}` };
    await expectAlerts("only the leader cannot be scraped", { scrapes: [standby, standby], others }, {});
    const noLeader = { PulumiOperatorNoLeader: 1 };
    await expectAlerts("another operator holds the Lease", { scrapes: [standby, standby] }, noLeader);
    const alone = { ...standby, text: off(standby.text, "leader_election_lease_held") };
    await expectAlerts("without a leader", { scrapes: [alone, alone] }, noLeader);

    proxy.on(({ isWrite, path }) => (isWrite && path.includes("/stacks/") ? { status: 403 } : undefined));
    await scene.stack("denied", { projectRepo: "https://git.example.com/denied", branch: "main" });
    const counters = [deniedRequests, reconcileErrors];
    const deniedOnce = await grown(running, scrape, counters);
    const scrapes = [deniedOnce, await grown(running, deniedOnce, counters)] as const;
    const firing = { PulumiOperatorRequestsRejected: 1, PulumiOperatorErrors: 1 };
    await expectAlerts("denied", { scrapes, repeated: longestBackoff }, firing);
  },
  testTimeoutMs * 2,
);

test(
  "a workspace without a pod, a missing Secret and a Git server that fails raise alerts",
  async () => {
    using git = gitServer();
    using broken = gitServer();
    git.commit();
    broken.status = 503;
    await using scene = await StackScene.open("without operator");
    // The operator has all controllers.
    await scene.simulator[Symbol.asyncDispose]();
    await using running = await start(scene.namespace, scene.rights.credentials);
    const source = { projectRepo: git.url, branch: "main" };
    const password = { type: "Secret", secret: { name: "settings", key: "password" } };
    await scene.stack("pending", source);
    await scene.stack("without-secret", { ...source, secretsRef: { password } });
    await scene.stack("unavailable", { projectRepo: broken.url, branch: "main" });
    await scene.becomes("unavailable", "stalled", (stack) => reasonOf(stack) === "SourceUnavailable");
    await scene.becomes("without-secret", "stalled", (stack) => reasonOf(stack) === "SpecInvalid");
    // There is no StatefulSet controller, so no pod is created.
    const find = async () => await scene.client.find(builtin.statefulSets, scene.ref("pending-workspace"));
    await waitFor(async () => (await find())?.spec?.replicas === 1, {
      what: "the StatefulSet",
      timeoutMs: testTimeoutMs / 2,
    });
    await waitFor(async () => (await running.scrape()).text.includes('state="pending"} 1'), { what: "the metric" });
    expect(await scene.client.find(workspaces, scene.ref("pending"))).toBeDefined();
    const before = await running.scrape();
    await scene.annotate("unavailable", { "pulumi.com/reconciliation-request": "again" });
    await expectAlerts(
      "in trouble",
      { scrapes: [before, await grown(running, before, [failedPolls])] },
      {
        PulumiWorkspacePodPending: 1,
        PulumiStackStalled: 2, // without-secret and unavailable
        PulumiGitHostFailing: 1,
        PulumiStackStuck: 1, // pending
      },
    );
  },
  testTimeoutMs * 2,
);
