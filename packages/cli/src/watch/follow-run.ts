/** Follows one run: its Update, the feed in the pod's log, and at the end its record. */
import { podNameOf, pulumiContainer, type Update } from "@pko/api";
import { isBadRequest, isForbidden, isNotFound, isTransient, missingPermission, podLogs } from "@pko/kube";
import { parseLogLine, runFinished, type AgentMessage } from "@pko/records";

import type { Context } from "../context.ts";
import { updates } from "../kinds.ts";
import { contentOf, findRecord } from "../runs/records.ts";
import { RunLog } from "../runs/run-log.ts";
import { followObjects } from "../stacks/follow.ts";
import { summarizeUpdate } from "../stacks/summary.ts";
import { seenValue, type Hidden } from "../visibility.ts";

export interface Followed {
  /** As last seen. */
  readonly update: Update;
  readonly log: RunLog;
  readonly hidden: readonly Hidden[];
  /** Events that the log did not contain, and the record does. */
  readonly recovered: number;
}

export interface RunObserver {
  /** Something has changed. */
  changed(state: Followed): void;
}

/** How long the log may lag behind the Update's status. */
const logDelayMs = 3000;
/** The operator writes the record soon after the run. */
const recordAttempts = 10;
const pauseMs = 500;

/** Until the Update is complete. */
export async function followRun(context: Context, update: Update, observer: RunObserver): Promise<Followed> {
  const run = new FollowedRun(context, update, observer);
  return await run.follow();
}

class FollowedRun {
  readonly #context: Context;
  readonly #observer: RunObserver;
  readonly #log = new RunLog();
  readonly #hidden: Hidden[] = [];
  readonly #feedEnd = new AbortController();
  #update: Update;
  #recovered = 0;

  constructor(context: Context, update: Update, observer: RunObserver) {
    this.#context = context;
    this.#update = update;
    this.#observer = observer;
  }

  get #state(): Followed {
    return { update: this.#update, log: this.#log, hidden: this.#hidden, recovered: this.#recovered };
  }

  async follow(): Promise<Followed> {
    const feed = this.#readFeed();
    // It is awaited below, whatever happens until then.
    feed.catch(() => undefined);
    try {
      await this.#untilComplete();
      await Promise.race([feed, pause(logDelayMs, this.#context.io.signal)]);
    } finally {
      this.#feedEnd.abort();
      await feed;
    }
    await this.#fillFromRecord();
    return this.#state;
  }

  async #untilComplete(): Promise<void> {
    const { client, namespace, io } = this.#context;
    const fieldSelector = `metadata.name=${this.#update.metadata.name ?? ""}`;
    for await (const change of followObjects(client, updates, { namespace, fieldSelector, signal: io.signal })) {
      const object = change.kind === "list" ? change.items[0] : change.object;
      // Its record shows how it ended.
      if (!object || change.kind === "deleted") return;
      this.#update = object;
      this.#observer.changed(this.#state);
      if (["succeeded", "failed"].includes(summarizeUpdate(object).state)) return;
    }
  }

  /** Ends with the run, or if the user may not read the log. */
  async #readFeed(): Promise<void> {
    const signal = AbortSignal.any([this.#context.io.signal, this.#feedEnd.signal]);
    while (!signal.aborted) {
      try {
        if (await this.#readLog(signal)) return;
      } catch (error) {
        if (signal.aborted) return;
        if (this.#isHidden(error)) return;
        // There is no pod yet, its container is about to start, or the connection broke.
        if (!isNotFound(error) && !isBadRequest(error) && !isTransient(error)) throw error;
      }
      await pause(pauseMs, signal);
    }
  }

  #isHidden(error: unknown): boolean {
    const permission = missingPermission(error);
    if (!permission) return isForbidden(error);
    this.#hidden.push({ what: "the log of the workspace pod", permission });
    this.#observer.changed(this.#state);
    return true;
  }

  /** True if the run has finished. Lines that were read before a broken connection are read again, and ignored. */
  async #readLog(signal: AbortSignal): Promise<boolean> {
    const { credentials, namespace } = this.#context;
    const { metadata, spec } = this.#update;
    const ref = { namespace, name: podNameOf(spec?.workspaceName ?? "") };
    const sinceTime = metadata.creationTimestamp;
    const options = { container: pulumiContainer, follow: true, signal, ...(sinceTime && { sinceTime }) };
    let rest = "";
    for await (const chunk of podLogs(credentials, ref, options)) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      if (this.#addLines(lines)) return true;
    }
    return false;
  }

  #addLines(lines: readonly string[]): boolean {
    const run = this.#update.metadata.uid ?? "";
    let isChanged = false;
    let isEnded = false;
    for (const line of lines) {
      const parsed = parseLogLine(line);
      if (parsed.kind === "event" && parsed.run === run) isChanged = this.#log.add(parsed.event) || isChanged;
      if (parsed.kind === "message" && isEndOf(run, parsed.message)) isEnded = true;
    }
    if (isChanged) this.#observer.changed(this.#state);
    return isEnded;
  }

  /** Also if nothing is missing in between: the end of the log may be. */
  async #fillFromRecord(): Promise<void> {
    const name = this.#update.metadata.name ?? "";
    const { signal } = this.#context.io;
    for (let attempt = 0; attempt < recordAttempts && !signal.aborted; attempt++) {
      const seen = await findRecord(this.#context, name);
      if (seen.kind === "hidden") return void this.#hidden.push(seen.hidden);
      const record = seenValue(seen);
      const content = record && (await contentOf(record));
      for (const event of content?.events ?? []) if (this.#log.add(event)) this.#recovered++;
      if (record) return;
      await pause(pauseMs, signal);
    }
  }
}

function isEndOf(run: string, message: AgentMessage | undefined): boolean {
  return message?.msg === runFinished && message.run === run;
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
