/** A real Prometheus that scrapes an operator and evaluates the alerts of the chart, with durations of seconds. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
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
export const stuckAfterSeconds = 3;

export class Prometheus implements AsyncDisposable {
  readonly #url: string;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(url: string, child: ChildProcess, folder: string) {
    this.#url = url;
    this.#child = child;
    this.#folder = folder;
  }

  /** `metricsPort` is that of the operator, on this machine. */
  static async start(metricsPort: number): Promise<Prometheus> {
    const folder = mkdtempSync(join(tmpdir(), "pko-prometheus-"));
    const port = await freePort();
    writeFileSync(join(folder, "rules.json"), await shortenedRules());
    const labels = { namespace: release, job: release, pod: "operator-0" };
    const config = {
      global: { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" },
      rule_files: [join(folder, "rules.json")],
      scrape_configs: [{ job_name: release, static_configs: [{ targets: [`127.0.0.1:${metricsPort}`], labels }] }],
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

  /** The alerts that fire, each with the name of its Stack or Workspace if it has one: `PulumiStackFailing website`. */
  async firing(): Promise<string[]> {
    const response = await fetch(`${this.#url}/api/v1/alerts`);
    if (!response.ok) throw new Error(`Prometheus responded with HTTP ${response.status}`);
    const { data } = (await response.json()) as { readonly data: { readonly alerts: readonly Alert[] } };
    const names = data.alerts
      .filter(({ state }) => state === "firing")
      .map(({ labels: { alertname, name } }) => [alertname, name].filter(Boolean).join(" "));
    return [...new Set(names)].toSorted();
  }

  async untilFiring(...expected: readonly string[]): Promise<void> {
    await this.#until("to fire", expected, (firing) => expected.filter((alert) => !firing.includes(alert)));
  }

  async untilResolved(...expected: readonly string[]): Promise<void> {
    await this.#until("to be resolved", expected, (firing) => expected.filter((alert) => firing.includes(alert)));
  }

  async #until(
    what: string,
    expected: readonly string[],
    missing: (firing: readonly string[]) => readonly string[],
  ): Promise<void> {
    let last: readonly string[] = expected;
    const isReached = async (): Promise<boolean> => {
      last = missing(await this.firing());
      return last.length === 0;
    };
    try {
      await waitFor(isReached, { timeoutMs: 120_000, what: `${expected.join(", ")} ${what}` });
    } catch (error) {
      const detail = `waited for ${last.join(", ")} ${what}; firing: ${(await this.firing()).join(", ")}`;
      throw new Error(`${detail}\n${await this.#child.log()}`, { cause: error });
    }
  }
}

/** The rules as shipped, but seconds instead of minutes, hours and days. */
async function shortenedRules(): Promise<string> {
  const { file } = await renderRules({ stuckAfterSeconds });
  const text = await Bun.file(file).text();
  return text.replaceAll(/"for":"[^"]*"/g, '"for":"1s"').replaceAll(/\[\d+[mhd]\]/g, `[${shortRange}]`);
}
