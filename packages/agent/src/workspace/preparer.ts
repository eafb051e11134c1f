/** One preparation at a time: the same request joins the one that is under way, another takes its place. */
import { createHash } from "node:crypto";
import {
  errorMessage,
  type PrepareMessage,
  type PreparePhase,
  type PrepareFailure,
  type PrepareRequest,
  type PrepareResult,
} from "@pko/rpc";
import { failed, shown } from "../outcome.ts";
import { prepareWorkspace, type StepContext } from "./steps.ts";

type PreparerContext = Omit<StepContext, "signal" | "onPhase">;

interface Preparation {
  readonly fingerprint: string;
  readonly abort: AbortController;
  readonly phases: PreparePhase[];
  readonly settled: Promise<void>;
  result?: PrepareResult;
  /** Resolves at the next phase or the result, and is then replaced. */
  changed: PromiseWithResolvers<void>;
}

export class Preparer {
  readonly #context: PreparerContext;
  #current: Preparation | undefined;
  #hasBegun = false;

  constructor(context: PreparerContext) {
    this.#context = context;
  }

  /** Whether this agent has received the workspace's secrets. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  get isBusy(): boolean {
    return this.#current !== undefined;
  }

  /**
   * Begins, or joins what was begun with the same request, and returns its messages: phases as they pass, then the
   * result. A reader that leaves does not end the preparation: it will be asked for again.
   */
  async prepare(request: PrepareRequest): Promise<AsyncGenerator<PrepareMessage>> {
    const fingerprint = createHash("sha256").update(JSON.stringify(request)).digest("hex");
    while (this.#current && this.#current.fingerprint !== fingerprint) await this.stop();
    this.#current ??= this.#begin(request, fingerprint);
    return follow(this.#current);
  }

  /** Ends what is under way, for an agent that stops. */
  async stop(): Promise<void> {
    this.#current?.abort.abort();
    await this.#current?.settled;
  }

  #begin(request: PrepareRequest, fingerprint: string): Preparation {
    this.#hasBegun = true;
    const settled = Promise.withResolvers<void>();
    const preparation: Preparation = {
      fingerprint,
      abort: new AbortController(),
      phases: [],
      changed: Promise.withResolvers<void>(),
      settled: settled.promise,
    };
    const finish = async (): Promise<void> => {
      preparation.result = await this.#run(request, preparation.abort.signal, (phase) => {
        preparation.phases.push(phase);
        signalChange(preparation);
      });
      this.#current = undefined;
      signalChange(preparation);
      settled.resolve();
    };
    void finish();
    return preparation;
  }

  async #run(
    request: PrepareRequest,
    signal: AbortSignal,
    onPhase: (phase: PreparePhase) => void,
  ): Promise<PrepareResult> {
    const { log, cli } = this.#context;
    hideSecrets(request, this.#context);
    try {
      const end = await prepareWorkspace(request, { ...this.#context, signal, onPhase });
      if (end.ok) {
        log.info("workspace prepared", {
          stacks: request.stacks.map(({ name }) => name).join(", "),
          revision: end.prepared.revision,
        });
        return { ok: true, prepared: end.prepared };
      }
      if (signal.aborted) return superseded;
      const failure: PrepareFailure = { phase: end.phase, ...shown(end.failure, cli.redactor) };
      log.warn("preparation failed", { phase: failure.phase, reason: failure.reason, failure: failure.message });
      return { ok: false, failure };
    } catch (error) {
      if (signal.aborted) return superseded;
      log.error("preparation broke", { error: errorMessage(error) });
      const { failure } = failed("other", errorMessage(error));
      return { ok: false, failure: { phase: "source", ...shown(failure, cli.redactor) } };
    }
  }
}

const superseded: PrepareResult = {
  ok: false,
  failure: { phase: "source", reason: "superseded", message: "a newer request took over", lines: [] },
};

async function* follow(preparation: Preparation): AsyncGenerator<PrepareMessage> {
  for (let told = 0; ;) {
    const { changed } = preparation;
    for (const phase of preparation.phases.slice(told)) {
      told += 1;
      yield { type: "phase", phase };
    }
    if (preparation.result && told === preparation.phases.length) break;
    if (!preparation.result) await changed.promise;
  }
  yield { type: "done", result: preparation.result };
}

function signalChange(preparation: Preparation): void {
  const { changed } = preparation;
  preparation.changed = Promise.withResolvers<void>();
  changed.resolve();
}

/** Before anything runs that could repeat them. Secrets of the configuration follow once they are read. */
function hideSecrets(request: PrepareRequest, { cli }: PreparerContext): void {
  const auth = request.source.kind === "git" ? request.source.auth : undefined;
  switch (auth?.kind) {
    case "token":
      // Those of a GitHub App are others every hour.
      cli.redactor.addPassing(auth.token);
      break;
    case "basic":
      cli.redactor.add(auth.password);
      break;
    case "ssh":
      cli.redactor.add(auth.privateKey, auth.passphrase);
      break;
    case undefined:
      break;
  }
}
