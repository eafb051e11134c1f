/** Runs one preparation at a time: the same request joins the current one, another request replaces it. */
import { randomUUID } from "node:crypto";
import {
  errorMessage,
  type PrepareMessage,
  type PreparePhase,
  type PrepareFailure,
  type PrepareRequest,
  type PrepareResult,
} from "@pko/rpc";
import { cleanFailure, failed } from "../outcome.ts";
import { jsonDigest } from "../system/digest.ts";
import { prepareWorkspace, type StepContext } from "./steps.ts";

type PreparerContext = Omit<StepContext, "signal" | "onPhase" | "preparation">;

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
  /** A fingerprint is stored, and must not help to guess the secrets in its request. */
  readonly #salt = randomUUID();
  #current: Preparation | undefined;
  #hasStarted = false;

  constructor(context: PreparerContext) {
    this.#context = context;
  }

  /** Whether this agent has received the workspace's secrets. */
  get hasStarted(): boolean {
    return this.#hasStarted;
  }

  get isBusy(): boolean {
    return this.#current !== undefined;
  }

  /**
   * Starts a preparation, or joins the current one if the request is the same, and returns its messages: phases as they
   * start, then the result. A disconnected reader does not end the preparation, because the operator calls again.
   */
  async prepare(request: PrepareRequest): Promise<AsyncGenerator<PrepareMessage>> {
    const { knownClis: _, ...identifying } = request;
    const fingerprint = jsonDigest([this.#salt, identifying]);
    while (this.#current && this.#current.fingerprint !== fingerprint) await this.stop();
    this.#current ??= this.#start(request, fingerprint);
    return follow(this.#current);
  }

  /** Aborts the current preparation and waits for its end. */
  async stop(): Promise<void> {
    this.#current?.abort.abort();
    await this.#current?.settled;
  }

  #start(request: PrepareRequest, fingerprint: string): Preparation {
    this.#hasStarted = true;
    const settled = Promise.withResolvers<void>();
    const preparation: Preparation = {
      fingerprint,
      abort: new AbortController(),
      phases: [],
      changed: Promise.withResolvers<void>(),
      settled: settled.promise,
    };
    const finish = async (): Promise<void> => {
      preparation.result = await this.#run(request, {
        preparation: fingerprint,
        signal: preparation.abort.signal,
        onPhase: (phase) => {
          preparation.phases.push(phase);
          signalChange(preparation);
        },
      });
      this.#current = undefined;
      signalChange(preparation);
      settled.resolve();
    };
    void finish();
    return preparation;
  }

  async #run(request: PrepareRequest, current: Omit<StepContext, keyof PreparerContext>): Promise<PrepareResult> {
    const { cli } = this.#context;
    const { signal } = current;
    const log = this.#context.log.child({ ...request.origin });
    maskSecrets(request, this.#context);
    try {
      const end = await prepareWorkspace(request, { ...this.#context, log, ...current });
      if (end.ok) {
        log.info("workspace prepared", {
          stacks: request.stacks.map(({ name }) => name).join(", "),
          revision: end.prepared.revision,
        });
        return { ok: true, prepared: end.prepared };
      }
      if (signal.aborted) return superseded;
      const failure: PrepareFailure = { phase: end.phase, ...cleanFailure(end.failure, cli.redactor) };
      log.warn("preparation failed", { phase: failure.phase, reason: failure.reason, failure: failure.message });
      return { ok: false, failure };
    } catch (error) {
      if (signal.aborted) return superseded;
      log.error("unexpected error in preparation", { error });
      const { failure } = failed("other", errorMessage(error));
      return { ok: false, failure: { phase: "source", ...cleanFailure(failure, cli.redactor) } };
    }
  }
}

const superseded: PrepareResult = {
  ok: false,
  failure: { phase: "source", reason: "superseded", message: "a newer request replaced this one", lines: [] },
};

async function* follow(preparation: Preparation): AsyncGenerator<PrepareMessage> {
  for (let sent = 0; ;) {
    const { changed } = preparation;
    for (const phase of preparation.phases.slice(sent)) {
      sent += 1;
      yield { type: "phase", phase };
    }
    if (preparation.result && sent === preparation.phases.length) break;
    if (!preparation.result) await changed.promise;
  }
  yield { type: "done", result: preparation.result };
}

function signalChange(preparation: Preparation): void {
  const { changed } = preparation;
  preparation.changed = Promise.withResolvers<void>();
  changed.resolve();
}

/** Called before any command that could print them. Secret configuration is added when it is read. */
function maskSecrets(request: PrepareRequest, { cli }: PreparerContext): void {
  const auth = request.source.kind === "git" ? request.source.auth : undefined;
  switch (auth?.kind) {
    case "token":
      // The tokens of a GitHub App change every hour.
      cli.redactor.addShortLived(auth.token);
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
