/**
 * The compiled operator, with the roles of the chart and through a proxy that injects faults, and a fake kubelet that starts
 * compiled agents. Nothing here restarts the operator: it has to survive.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { faultProxy, testNamespace, newSeed, type FaultProxy, type TestNamespace } from "@pko/testkit";

import { CountingCli } from "../../../test/faults/counting-cli.ts";
import { FakeKubelet } from "../../../test/faults/fake-kubelet.ts";
import { FaultInjector } from "../../../test/faults/fault-injector.ts";
import { Fuse } from "../../../test/faults/fuse.ts";
import { Observer } from "../../../test/faults/observer.ts";
import { Shop } from "../../../test/faults/shop.ts";
import { setStage, type Stage } from "../../../test/faults/stage.ts";
import { operatorAccount, type OperatorAccount } from "../../../test/rights/account.ts";
import { OperatorProcess } from "../operator-process.ts";
import type { Executables } from "../executables.ts";

/** The share of requests to the API server and to agents that fail: connections and streams are aborted, or answered with an error. */
const faultRate = 0.01;

/** The machine is busy, and the operator ends if it cannot renew its Lease. */
const election = ["--lease-duration=60s", "--renew-deadline=50s", "--retry-period=2s"];

interface Parts {
  readonly stage: Stage;
  readonly place: TestNamespace;
  readonly account: OperatorAccount;
  readonly proxy: FaultProxy;
}

export class Scene implements AsyncDisposable {
  readonly #parts: Parts;
  readonly #injector: FaultInjector;
  readonly #fuse = new Fuse();
  readonly #observer: Observer;
  readonly kubelet: FakeKubelet;
  readonly shop: Shop;
  readonly folder: string;
  #operator: OperatorProcess | undefined;
  #isDisturbed = false;
  #requests = 0;
  readonly #forbidden = new Set<string>();

  private constructor(parts: Parts) {
    const { stage, place, proxy } = parts;
    this.#parts = parts;
    this.folder = join(stage.folder, place.name);
    for (const each of ["backend", "git"]) mkdirSync(join(this.folder, each), { recursive: true });
    writeFileSync(this.#kubeconfig, proxy.kubeconfig);
    const own = { client: place.client, namespace: place.name, folder: this.folder };
    const crash = (): Promise<void> => Promise.resolve();
    this.#injector = new FaultInjector({ fuse: this.#fuse, crash, faultRate, seed: newSeed("faults") });
    this.kubelet = new FakeKubelet({
      ...own,
      agent: stage.programs.agent,
      pulumi: new CountingCli(this.folder, "pulumi").path,
      arrive: (method, workspace) =>
        this.#isDisturbed ? this.#injector.arrive(`rpc ${method} ${workspace}`) : undefined,
      crash,
    });
    const commits: string[] = [];
    this.#observer = new Observer({ ...own, commits });
    this.shop = new Shop({ ...own, observer: this.#observer, commits });
    proxy.on((request) => (this.#isDisturbed ? this.#injector.verdict(request) : undefined));
  }

  static async open(executables: Executables): Promise<Scene> {
    const stage = await setStage(executables);
    const place = await testNamespace({ server: stage.server });
    const { name } = place;
    const account = await operatorAccount({ admin: stage.server.credentials, home: name, namespaces: [name] });
    const scene = new Scene({ stage, place, account, proxy: await faultProxy(account.credentials) });
    await scene.#observer.synced;
    scene.#operator = await OperatorProcess.start({
      executable: executables.operatorPath,
      kubeconfig: scene.#kubeconfig,
      namespace: name,
      folder: scene.folder,
      flags: [`--watch-namespaces=${name}`, "--allow-http", "--allow-addresses=127.0.0.1", ...election],
    });
    return scene;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { stage, place, account, proxy } = this.#parts;
    await this.#operator?.stop();
    await this.kubelet[Symbol.asyncDispose]();
    await this.#observer[Symbol.asyncDispose]();
    await proxy.close();
    await this.shop.stop();
    await account.remove();
    await place.remove();
    await stage[Symbol.asyncDispose]();
  }

  get operator(): OperatorProcess {
    if (!this.#operator) throw new Error("the operator is not started");
    return this.#operator;
  }

  /** From now on, requests fail. Not before: an operator whose first requests fail ends, and is restarted. */
  disturb(): void {
    this.#isDisturbed = true;
  }

  /** Calls that failed on purpose. */
  get injectedFaults(): number {
    return this.#injector.count;
  }

  /** The operator's requests so far. */
  get requests(): number {
    return this.#requests + this.#parts.proxy.requests.length;
  }

  /** The operator's requests with the response 403. */
  get forbidden(): readonly string[] {
    this.forgetRequests();
    return [...this.#forbidden];
  }

  /** What the test itself remembers must not grow. */
  forgetRequests(): void {
    const { proxy } = this.#parts;
    for (const { verb, resource, status } of proxy.requests)
      if (status === 403) this.#forbidden.add(`${verb} ${resource}`);
    this.#requests += proxy.requests.length;
    proxy.forget();
    this.#fuse.arm();
    this.#observer.takeChanges();
  }

  /** Aborts every connection between the operator and the API server, watches included. */
  cutConnections(): void {
    this.#parts.proxy.cut();
  }

  get #kubeconfig(): string {
    return join(this.folder, "kubeconfig");
  }
}
