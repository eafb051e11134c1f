/** An agent whose runs a test controls: the real protocol over mTLS, with state that outlives a restart of the agent. */
import { addEvent, emptyContent, encodeContent, noProgress, type Progress, type RunEvent } from "@pko/records";
import {
  fail,
  protocolVersion,
  succeed,
  type InfoResult,
  type Output,
  type PrepareResult,
  type RecordResult,
  type RunResult,
  type SealedPlan,
  type StartRequest,
  type WatchMessage,
  type WorkspaceRef,
} from "@pko/rpc";
import type { OperatorCa } from "@pko/operator";
import { serveAgent, type AgentServer, type AgentService } from "@pko/rpc/server";

interface FakeRun {
  readonly request: StartRequest;
  readonly events: RunEvent[];
  progress: Progress;
  result?: RunResult;
  cancelled: boolean;
  changed: PromiseWithResolvers<void>;
}

/** The agent of one pod: a new FakeAgent is a new pod. */
export class FakeAgent {
  readonly workspace: WorkspaceRef;
  /** Every run that started, in order: one entry each, however many requests there were. */
  readonly started: string[] = [];
  /** Requests by method. */
  readonly calls = new Map<string, number>();
  readonly outputs: Output[] = [];
  /** What `plan` returns. */
  plan: SealedPlan | undefined;
  /** Whether it is older than records. */
  hasRecords = true;
  /** The content of records, if not the events of their run. */
  recordContent: string | undefined;
  readonly faults: unknown[] = [];
  readonly #runs = new Map<string, FakeRun>();
  /** While set, `start` fails with it. */
  refusal: "busy" | "unprepared" | "invalidRequest" | undefined;
  /** Ends each run as soon as it is cancelled. */
  stopsOnCancel = true;
  /** The result of `prepare`. */
  preparation: PrepareResult | undefined;
  /** Called for each run as it starts. */
  onStart: (runId: string) => void = () => undefined;
  readonly #hostname: string;
  #server: AgentServer | undefined;
  #port: number;

  constructor(workspace: WorkspaceRef, { hostname = "127.0.0.1", port = 0 } = {}) {
    this.workspace = workspace;
    this.#hostname = hostname;
    this.#port = port;
  }

  get port(): number {
    return this.#port;
  }

  async listen(ca: Pick<OperatorCa, "workspaceCertificate">): Promise<this> {
    this.#server = serveAgent({
      service: this.#service(),
      hostname: this.#hostname,
      port: this.#port,
      credentials: await ca.workspaceCertificate(this.workspace),
      onFault: (_, error) => void this.faults.push(error),
      heartbeatMs: 1_000,
    });
    this.#port = this.#server.port;
    return this;
  }

  async close(): Promise<void> {
    await this.#server?.stop(true);
    this.#server = undefined;
  }

  emit(runId: string, ...events: readonly RunEvent[]): void {
    const run = this.#run(runId);
    run.events.push(...events);
    run.progress = events.reduce((progress, event) => addEvent(progress, event), run.progress);
    wake(run);
  }

  finish(runId: string, result: Partial<RunResult> = {}): void {
    const run = this.#run(runId);
    run.result = {
      outcome: "succeeded",
      operation: run.request.operation.kind,
      stack: run.request.stack ?? "dev",
      revision: "abc",
      startedAt: "2030-01-01T00:00:00Z",
      finishedAt: "2040-01-01T00:00:00Z",
      progress: run.progress,
      changes: { create: 2, same: 1 },
      output: { tail: "", bytes: 0, truncated: false },
      ...result,
    };
    wake(run);
  }

  requestOf(runId: string): StartRequest {
    return this.#run(runId).request;
  }

  isCancelled(runId: string): boolean {
    return this.#runs.get(runId)?.cancelled ?? false;
  }

  #run(runId: string): FakeRun {
    const run = this.#runs.get(runId);
    if (!run) throw new Error(`there is no run ${runId}`);
    return run;
  }

  #count(method: string): void {
    this.calls.set(method, (this.calls.get(method) ?? 0) + 1);
  }

  #service(): AgentService {
    return {
      info: async () => succeed(info),
      attach: async (runId) => {
        const known = this.#runs.get(runId);
        if (known) this.#count("start");
        return known && stateOf(known);
      },
      prepare: async () => {
        const { preparation: result } = this;
        if (!result) return fail("internal", "not in this test");
        return succeed(
          (async function* () {
            yield { type: "done", result } as const;
          })(),
        );
      },
      start: async (request) => {
        this.#count("start");
        return this.#start(request);
      },
      watch: async ({ runId, fromSeq }, signal) => {
        this.#count("watch");
        const run = this.#runs.get(runId);
        return run ? succeed(follow(run, fromSeq, signal)) : fail("notFound", "there is no such run");
      },
      cancel: async ({ runId }) => {
        this.#count("cancel");
        const run = this.#runs.get(runId);
        if (!run) return fail("notFound", "there is no such run");
        run.cancelled = true;
        if (!run.result && this.stopsOnCancel) this.finish(runId, { outcome: "cancelled" });
        return succeed({ state: "cancelling" });
      },
      plan: async () => {
        this.#count("plan");
        const { plan } = this;
        if (!plan) return fail("unprepared", "the run has no plan");
        return succeed(
          (async function* () {
            yield { type: "part", content: plan.content } as const;
            yield { type: "end", digest: plan.digest } as const;
          })(),
        );
      },
      record: async ({ runId }) => {
        this.#count("record");
        if (!this.hasRecords) return fail("unknownMethod", "the agent does not support this method");
        const run = this.#runs.get(runId);
        if (!run) return fail("notFound", "there is no such run");
        if (!run.result) return fail("unprepared", "the run has no record, because it is active");
        const record = await recordOf(run);
        return succeed({ ...record, content: this.recordContent ?? record.content });
      },
      outputs: async () => {
        this.#count("outputs");
        const { outputs } = this;
        return succeed(
          (async function* () {
            for (const output of outputs) yield { type: "output", output } as const;
            yield { type: "end", count: outputs.length } as const;
          })(),
        );
      },
    };
  }

  #start(request: StartRequest): Awaited<ReturnType<AgentService["start"]>> {
    const known = this.#runs.get(request.runId);
    if (known) return stateOf(known);
    if (this.refusal) return fail(this.refusal, `the agent is ${this.refusal}`);
    this.started.push(request.runId);
    const changed = Promise.withResolvers<void>();
    this.#runs.set(request.runId, { request, events: [], progress: noProgress, cancelled: false, changed });
    this.onStart(request.runId);
    return succeed({ state: "started", lastSeq: 0, progress: noProgress });
  }
}

async function recordOf({ events }: FakeRun): Promise<RecordResult> {
  const numbered = events.map((event, index) => ({ seq: index + 1, time: "2030-01-01T00:00:00Z", event }));
  return {
    content: await encodeContent({ ...emptyContent, events: numbered }),
    omitted: emptyContent.omitted,
    versions: { agent: info.agentVersion, pulumi: "3.200.0" },
    inputs: { program: "sha256:1" },
  };
}

function stateOf({ progress, result, events }: FakeRun): Awaited<ReturnType<AgentService["start"]>> {
  const state = result ? "finished" : "running";
  return succeed({ state, lastSeq: events.length, progress, ...(result && { result }) });
}

const info: InfoResult = {
  protocol: protocolVersion,
  agentVersion: "test",
  hostname: "web-workspace-0",
  startedAt: "2030-01-01T00:00:00Z",
  stopping: false,
  residentBytes: 1,
};

function wake(run: FakeRun): void {
  const { resolve } = run.changed;
  run.changed = Promise.withResolvers<void>();
  resolve();
}

async function* follow(run: FakeRun, fromSeq: number, signal: AbortSignal): AsyncGenerator<WatchMessage> {
  const unread = new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
  for (let seq = fromSeq; !signal.aborted;) {
    const { changed } = run;
    for (; seq <= run.events.length; seq++) {
      const event = run.events[seq - 1];
      if (event) yield { type: "event", seq, time: "2030-01-01T00:00:00Z", event };
    }
    if (run.events.length > 0) yield { type: "progress", seq: run.events.length, progress: run.progress };
    if (run.result) {
      yield { type: "result", seq: run.events.length, result: run.result };
      return;
    }
    await Promise.race([changed.promise, unread]);
  }
}
