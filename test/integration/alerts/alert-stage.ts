/**
 * A real operator, agents and CLI, with a real API server behind a proxy, and a Prometheus that scrapes the operator. Only
 * the kubelet is fake.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { leaseName } from "@pko/api";
import { builtin, timestamp } from "@pko/kube";
import {
  faultProxy,
  freePort,
  spawnChild,
  testNamespace,
  type ChildProcess,
  type FaultProxy,
  type TestNamespace,
} from "@pko/testkit";
import { expect } from "bun:test";

import { root } from "../../docs/pages.ts";
import { CountingCli } from "../../faults/counting-cli.ts";
import { FakeKubelet } from "../../faults/fake-kubelet.ts";
import { Observer } from "../../faults/observer.ts";
import { Shop } from "../../faults/shop.ts";
import { setStage, type Stage } from "../../faults/stage.ts";
import { operatorAccount, type OperatorAccount } from "../../rights/account.ts";
import { commandsIn, Shell } from "../docs/shell.ts";
import { Prometheus } from "./prometheus.ts";

interface Parts {
  readonly stage: Stage;
  readonly place: TestNamespace;
  readonly account: OperatorAccount;
  readonly proxy: FaultProxy;
  readonly metricsPort: number;
  readonly prometheus: Prometheus;
}

export class AlertStage implements AsyncDisposable {
  readonly #parts: Parts;
  readonly #kubelet: FakeKubelet;
  readonly #observer: Observer;
  /** The workspaces whose pods do not start. */
  readonly pending = new Set<string>();
  readonly shop: Shop;
  readonly folder: string;
  #operator: ChildProcess | undefined;

  private constructor(parts: Parts) {
    const { stage, place, proxy } = parts;
    this.#parts = parts;
    this.folder = join(stage.folder, place.name);
    for (const each of ["backend", "git"]) mkdirSync(join(this.folder, each), { recursive: true });
    writeFileSync(join(this.folder, "kubeconfig"), proxy.kubeconfig);
    const own = { client: place.client, namespace: place.name, folder: this.folder };
    this.#kubelet = new FakeKubelet({
      ...own,
      agent: stage.programs.agent,
      pulumi: new CountingCli(this.folder).path,
      pending: this.pending,
      arrive: () => undefined,
      crash: () => Promise.resolve(),
    });
    this.#observer = new Observer({ ...own, commits: [] });
    this.shop = new Shop({ ...own, observer: this.#observer, commits: [] });
  }

  static async open(): Promise<AlertStage> {
    const stage = await setStage();
    const place = await testNamespace({ server: stage.server });
    const { name } = place;
    const account = await operatorAccount({ admin: stage.server.credentials, home: name, namespaces: [name] });
    const metricsPort = await freePort();
    const [proxy, prometheus] = await Promise.all([faultProxy(account.credentials), Prometheus.start(metricsPort)]);
    const opened = new AlertStage({ stage, place, account, proxy, metricsPort, prometheus });
    await opened.#observer.synced;
    opened.startOperator();
    return opened;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { stage, place, account, proxy, prometheus } = this.#parts;
    await prometheus[Symbol.asyncDispose]();
    await this.killOperator();
    await this.#kubelet[Symbol.asyncDispose]();
    await this.#observer[Symbol.asyncDispose]();
    await proxy.close();
    await this.shop.stop();
    await account.remove();
    await place.remove();
    await stage[Symbol.asyncDispose]();
    if (this.#kubelet.faults.length > 0) throw new AggregateError(this.#kubelet.faults, "the fake kubelet failed");
  }

  get prometheus(): Prometheus {
    return this.#parts.prometheus;
  }

  get proxy(): FaultProxy {
    return this.#parts.proxy;
  }

  get place(): TestNamespace {
    return this.#parts.place;
  }

  startOperator(): void {
    const { stage, place, metricsPort } = this.#parts;
    const flags = {
      kubeconfig: join(this.folder, "kubeconfig"),
      namespace: place.name,
      "watch-namespaces": place.name,
      "agent-image": "agent:1",
      "probe-address": "127.0.0.1:0",
      "metrics-address": `127.0.0.1:${metricsPort}`,
      "allow-addresses": "127.0.0.1",
      "max-concurrent-updates-per-namespace": "2",
      "reference-check-interval": "1s",
      // On a busy machine, it must not end because it cannot renew its Lease.
      "lease-duration": "60s",
      "renew-deadline": "50s",
      "retry-period": "500ms",
    };
    const given = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    const command = [...stage.programs.operator, "--allow-http", "--leader-elect", ...given];
    this.#operator = spawnChild({ command, logFile: join(this.folder, "operator.log") });
  }

  async killOperator(): Promise<void> {
    await this.#operator?.stop("SIGKILL");
  }

  /** Another replica has the Lease for this time, and does nothing. */
  async holdLease(leaseDurationSeconds: number): Promise<void> {
    const now = timestamp(Date.now()).replace("Z", ".000000Z");
    const spec = { holderIdentity: "hanging", leaseDurationSeconds, acquireTime: now, renewTime: now };
    const ref = { namespace: this.place.name, name: leaseName };
    await this.place.client.patch(builtin.leases, ref, { patch: { type: "merge", body: { spec } } });
  }

  /** Runs the commands below "Fix" of an alert's runbook, for a Stack. `removeCause` is called before the last of them. */
  async fix(alert: string, stack = "", removeCause: () => void = () => undefined): Promise<void> {
    const page = readFileSync(join(root, "docs/runbooks", `${alert}.md`), "utf8");
    const [section = ""] = page.slice(page.indexOf("\n## Fix")).split("\n## Verify");
    const commands = commandsIn(section);
    expect(commands).not.toEqual([]);
    using shell = new Shell(this.#parts.stage.server);
    const own = (line: string): string =>
      line
        .replaceAll("website", stack)
        .replaceAll("team-a", this.place.name)
        .replaceAll("-n pulumi-kubernetes-operator", `-n ${this.place.name}`)
        .replace(/ --timeout=\d+m/, " --timeout=60s")
        // There is no terminal for the confirmation.
        .replace(/^kubectl pulumi approve .*$/, "$& --yes");
    for (const [index, line] of commands.entries()) {
      if (index === commands.length - 1) removeCause();
      await shell.run(own(line));
    }
  }
}
