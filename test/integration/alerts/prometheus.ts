/** A real Prometheus that scrapes operators and evaluates the alerts of the chart, with durations of seconds. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { toolPath } from "@pko/cluster";
import { freePort, spawnChild, waitFor, type ChildProcess } from "@pko/testkit";

import { release, renderRules } from "./promtool.ts";

interface Alert {
  readonly labels: Readonly<Record<string, string>>;
  readonly state: "pending" | "firing";
}

/** What "for a long time" means here. */
const shortRange = "15s";
const behindAfterSeconds = 3;
const slotAfterSeconds = 3;
const limits = { stuckAfterSeconds: 3, maxUpdates: 8 };
const timeoutMs = 240_000;

export class Prometheus implements AsyncDisposable {
  readonly #url: string;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(url: string, child: ChildProcess, folder: string) {
    this.#url = url;
    this.#child = child;
    this.#folder = folder;
  }

  static async start(): Promise<Prometheus> {
    const folder = mkdtempSync(join(tmpdir(), "pko-prometheus-"));
    const port = await freePort();
    writeFileSync(join(folder, "rules.json"), await shortenedRules());
    const config = {
      // An operator without CPU responds slowly.
      global: { scrape_interval: "2s", scrape_timeout: "2s", evaluation_interval: "1s" },
      rule_files: [join(folder, "rules.json")],
      scrape_configs: [{ job_name: release, file_sd_configs: [{ files: [join(folder, "targets.json")] }] }],
    };
    writeFileSync(join(folder, "prometheus.yaml"), JSON.stringify(config));
    const child = spawnChild({
      command: [
        toolPath("prometheus"),
        `--config.file=${join(folder, "prometheus.yaml")}`,
        `--storage.tsdb.path=${join(folder, "data")}`,
        `--web.listen-address=127.0.0.1:${port}`,
        "--log.level=warn",
      ],
      logFile: join(folder, "prometheus.log"),
    });
    const started = new Prometheus(`http://127.0.0.1:${port}`, child, folder);
    const isReady = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${port}/-/ready`)).ok;
    await waitFor(isReady, { timeoutMs: 60_000, what: "Prometheus to start" });
    return started;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.stop("SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** The ports of the operators on this machine, by pod. Prometheus watches the file. */
  setTargets(ports: ReadonlyMap<string, number>): void {
    const targets = Array.from(ports, ([pod, port]) => ({
      targets: [`127.0.0.1:${port}`],
      labels: { namespace: release, job: release, pod },
    }));
    writeFileSync(join(this.#folder, "targets.new"), JSON.stringify(targets));
    renameSync(join(this.#folder, "targets.new"), join(this.#folder, "targets.json"));
  }

  /** Whether an alert fires: for the Stack, Workspace, queue or certificate of this name, unless it is about none. */
  async isFiring(alert: string, subject?: string): Promise<boolean> {
    return (await this.#firing()).some(({ labels: { alertname, name, certificate } }) => {
      const about = name ?? certificate;
      return alertname === alert && (about === undefined || about === subject);
    });
  }

  async untilFiring(alert: string, subject?: string): Promise<void> {
    await this.#until(`${alert} ${subject ?? ""} to fire`, () => this.isFiring(alert, subject));
  }

  async untilResolved(alert: string, subject?: string): Promise<void> {
    await this.#until(`${alert} ${subject ?? ""} to be resolved`, async () => !(await this.isFiring(alert, subject)));
  }

  async #firing(): Promise<readonly Alert[]> {
    const response = await fetch(`${this.#url}/api/v1/alerts`);
    if (!response.ok) throw new Error(`Prometheus responded with HTTP ${response.status}`);
    const { data } = (await response.json()) as { readonly data: { readonly alerts: readonly Alert[] } };
    return data.alerts.filter(({ state }) => state === "firing");
  }

  async #until(what: string, isReached: () => Promise<boolean>): Promise<void> {
    try {
      await waitFor(isReached, { timeoutMs, what });
    } catch (error) {
      const firing = (await this.#firing()).map(({ labels: { alertname, name = "" } }) => `${alertname} ${name}`);
      throw new Error(`waited for ${what}; firing: ${firing.join(", ")}\n${await this.#child.log()}`, { cause: error });
    }
  }
}

/** The rules as shipped, but seconds instead of minutes, hours and days. */
async function shortenedRules(): Promise<string> {
  const { file } = await renderRules(limits);
  const text = await Bun.file(file).text();
  return text
    .replaceAll(/"for":"[^"]*"/g, '"for":"1s"')
    .replaceAll(/\[\d+[mhd]\]/g, `[${shortRange}]`)
    .replace(/(\(workqueue_oldest_age_seconds[^>]*\) > )\d+/, `$1${behindAfterSeconds}`)
    .replace(/(update_slots_waiting_since_timestamp_seconds[^>]* > )\d+/, `$1${slotAfterSeconds}`);
}
