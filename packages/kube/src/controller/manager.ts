/**
 * The manager runs one process: stores that are always in sync, controllers that run while it leads, endpoints, and a
 * graceful stop.
 *
 * A stop has these steps: take no more keys; let reconciles finish, or abort them at the drain deadline; write the last
 * events; release the lease, now that none of our writes is in flight; end the watches; close the endpoints.
 */
import { onAbort, whenAborted } from "../abort.ts";
import { sleep, systemClock, type Clock } from "../clock.ts";
import type { Controller } from "./controller.ts";
import { serveHttp, type Answer, type HttpServer, type Listen, type Protection } from "../telemetry/http-server.ts";
import { soleLeader, type Elector, type Term } from "../leader/leadership.ts";
import { silentLogger, type Logger } from "../telemetry/log.ts";
import {
  acceptedFormat,
  exposeProcess,
  metricsContentTypes,
  metricsRegistry,
  type Registry,
} from "../telemetry/metrics.ts";
import {
  heartbeat,
  probe,
  reflectorCheck,
  workerCheck,
  type Checks,
  type Heartbeat,
  type ProbeReport,
} from "../telemetry/probes.ts";
import { exposeReflectors, type Reflectors } from "../store/reflector-metrics.ts";

export interface ManagerOptions {
  /** All reflectors that the controllers use, by their names in probes and metrics. */
  readonly reflectors: Reflectors;
  readonly controllers: readonly Controller[];
  /** What runs in every replica, whether or not it leads, until the process stops. */
  readonly services?: readonly Service[];
  /** Without an elector, this process always leads. */
  readonly elector?: Elector;
  /** Where `/healthz` and `/readyz` are served; not served if absent. */
  readonly probes?: Listen;
  /** Where `/metrics` is served; may be the same as `probes`. */
  readonly metricsEndpoint?: Listen & Protection;
  /** Called when the reconciles of a term have ended, for last writes such as events. */
  readonly flush?: () => Promise<void>;
  /** How long a stop waits for reconciles before it aborts them. */
  readonly drainMs?: number;
  /** A reconcile that runs longer than this is considered stuck. */
  readonly wedgedAfterMs?: number;
  readonly log?: Logger;
  readonly metrics?: Registry;
  readonly clock?: Clock;
}

export interface Service {
  /** Returns a function that stops it. */
  start(): () => Promise<void>;
}

/** "forced": something did not end in time, so the lease was not released and will expire. */
export type StopOutcome = "clean" | "forced";

export interface Manager {
  /** Runs until `stop` aborts and everything has ended. Rejects on an unexpected failure. */
  run(stop: AbortSignal): Promise<StopOutcome>;
  ready(): ProbeReport;
  alive(): ProbeReport;
  /** The actual ports, for callers that requested port 0. */
  readonly ports: { readonly probes?: number; readonly metrics?: number };
}

export function manager(options: ManagerOptions): Manager {
  return new ProcessManager(options);
}

const defaults = { drainMs: 20_000, wedgedAfterMs: 10 * 60_000, flushMs: 2000, stuckAfterMs: 30_000 };
/** The time after the drain deadline in which aborted reconciles end and the lease is released. */
const graceMs = 5000;

class ProcessManager implements Manager {
  readonly #options: ManagerOptions;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #metrics: Registry;
  readonly #elector: Elector;
  readonly #drainMs: number;
  #heartbeat: Heartbeat | undefined;
  #servers: { readonly probes?: HttpServer; readonly metrics?: HttpServer } = {};

  constructor(options: ManagerOptions) {
    this.#options = options;
    this.#log = (options.log ?? silentLogger).child({ logger: "manager" });
    this.#clock = options.clock ?? systemClock;
    this.#metrics = options.metrics ?? metricsRegistry();
    this.#elector = options.elector ?? soleLeader();
    this.#drainMs = options.drainMs ?? defaults.drainMs;
    assertComplete(options);
  }

  get ports(): Manager["ports"] {
    const { probes, metrics } = this.#servers;
    return { ...(probes && { probes: probes.port }), ...(metrics && { metrics: metrics.port }) };
  }

  ready(): ProbeReport {
    const { reflectors } = this.#options;
    const checks = Object.entries(reflectors).map(
      ([name, each]) => [`reflector ${name}`, reflectorCheck(each)] as const,
    );
    return probe(Object.fromEntries(checks));
  }

  alive(): ProbeReport {
    const { controllers, wedgedAfterMs = defaults.wedgedAfterMs } = this.#options;
    const workers = controllers.map((each) => [`controller ${each.name}`, workerCheck(each, wedgedAfterMs)] as const);
    const checks: Checks = {
      ...(this.#heartbeat && { "event loop": this.#heartbeat.check }),
      ...Object.fromEntries(workers),
    };
    return probe(checks);
  }

  async run(stop: AbortSignal): Promise<StopOutcome> {
    const background = new AbortController();
    const stopMeasuring = this.#measure();
    const stops: (() => Promise<void>)[] = [];
    try {
      this.#listen();
      for (const service of this.#options.services ?? []) stops.push(service.start());
      const reflecting = Object.values(this.#options.reflectors).map((each) => each.run(background.signal));
      const outcome = await this.#leadUntil(stop);
      background.abort();
      if (outcome === "clean") await Promise.all(reflecting);
      this.#log.info("stopped", { outcome });
      return outcome;
    } finally {
      background.abort();
      stopMeasuring();
      await Promise.all([
        ...stops.map((each) => each()),
        ...Object.values(this.#servers).map((server) => server.stop()),
      ]);
    }
  }

  async #leadUntil(stop: AbortSignal): Promise<StopOutcome> {
    const settled = new AbortController();
    const forced = async (): Promise<StopOutcome> => {
      await whenAborted(stop);
      await sleep(this.#clock, this.#drainMs + graceMs, settled.signal);
      return "forced";
    };
    const clean = async (): Promise<StopOutcome> => {
      await this.#elector.run(stop, (term) => this.#lead(term, stop));
      return "clean";
    };
    try {
      return await Promise.race([clean(), forced()]);
    } finally {
      settled.abort();
    }
  }

  /** Runs the controllers until the term or the process ends and the last reconcile has finished. */
  async #lead(term: Term, stop: AbortSignal): Promise<void> {
    const end = new AbortController();
    const kill = new AbortController();
    let cancelDrain = (): void => undefined;
    const unlink = [
      onAbort(term.signal, (reason) => {
        end.abort(reason);
        kill.abort(reason);
      }),
      onAbort(stop, (reason) => {
        end.abort(reason);
        cancelDrain = this.#clock.after(this.#drainMs, () => {
          this.#log.warn("aborting reconciles that did not end in time", { drainMs: this.#drainMs });
          kill.abort(new Error("the process is stopping"));
        });
      }),
    ];
    try {
      await this.#runControllers(end, kill);
      await this.#flush();
    } finally {
      cancelDrain();
      for (const each of unlink) each();
    }
  }

  /** If one controller fails, the others stop too: half a process is worse than none. */
  async #runControllers(end: AbortController, kill: AbortController): Promise<void> {
    const runs = this.#options.controllers.map(async (each) => {
      try {
        await each.run({ stop: end.signal, kill: kill.signal });
      } finally {
        end.abort(new Error(`controller ${each.name} ended`));
      }
    });
    // Without controllers, a term still lasts until it ends.
    const results = await Promise.allSettled([...runs, whenAborted(end.signal)]);
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  async #flush(): Promise<void> {
    if (!this.#options.flush) return;
    const settled = new AbortController();
    try {
      await Promise.race([this.#options.flush(), sleep(this.#clock, defaults.flushMs, settled.signal)]);
    } finally {
      settled.abort();
    }
  }

  #measure(): () => void {
    const beats = heartbeat(this.#clock, defaults.stuckAfterMs);
    this.#heartbeat = beats;
    const lag = this.#metrics.gauge({
      name: "event_loop_lag_seconds",
      help: "The longest time that the event loop was blocked since the last scrape.",
    });
    const ends = [
      this.#metrics.onCollect(() => lag.set({}, beats.takeLagMs() / 1000)),
      exposeReflectors(this.#metrics, this.#options.reflectors),
      exposeProcess(this.#metrics),
      () => beats.stop(),
    ];
    return () => {
      for (const end of ends) end();
      this.#heartbeat = undefined;
    };
  }

  #listen(): void {
    const { probes, metricsEndpoint: metrics } = this.#options;
    const onError = (error: unknown): void => this.#log.error("an endpoint failed", { error });
    const probeRoutes = { "/healthz": () => answer(this.alive()), "/readyz": () => answer(this.ready()) };
    const metricsRoutes = {
      "/metrics": ({ headers }: Request): Answer => {
        const format = acceptedFormat(headers.get("accept"));
        return { contentType: metricsContentTypes[format], body: this.#metrics.expose(format) };
      },
    };
    if (probes && metrics && !metrics.tls && !metrics.refuse && isSame(probes, metrics)) {
      const server = serveHttp({ ...probes, routes: { ...probeRoutes, ...metricsRoutes }, onError });
      this.#servers = { probes: server, metrics: server };
      return;
    }
    // Assigned one by one, so that the first server is closed if the second fails to start.
    if (probes) this.#servers = { probes: serveHttp({ ...probes, routes: probeRoutes, onError }) };
    if (metrics) {
      this.#servers = { ...this.#servers, metrics: serveHttp({ ...metrics, routes: metricsRoutes, onError }) };
    }
  }
}

function answer({ ok, text }: ProbeReport): Answer {
  return { status: ok ? 200 : 503, body: text };
}

function isSame(a: Listen, b: Listen): boolean {
  return a.port !== 0 && a.port === b.port && a.hostname === b.hostname;
}

/** A controller waits for its stores: with a store that nothing fills it would silently wait forever. */
function assertComplete({ reflectors, controllers }: ManagerOptions): void {
  const known = new Set(Object.values(reflectors));
  for (const { name, reflectors: used } of controllers) {
    if (!used.every((reflector) => known.has(reflector))) {
      throw new Error(`controller ${name} uses a reflector that the manager was not given`);
    }
  }
  const names = controllers.map(({ name }) => name);
  if (new Set(names).size < names.length) throw new Error(`two controllers have the same name: ${names.join(", ")}`);
}
