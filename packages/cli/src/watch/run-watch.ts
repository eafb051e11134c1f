/** `watch`: follows a run, draws it while it runs, and reports its result. */
import type { Stack, Update } from "@pko/api";

import { argument, textOption, type Input, type Report } from "../command.ts";
import { findNamed, type Context } from "../context.ts";
import { stacks } from "../kinds.ts";
import { withColor, withoutColor } from "../output/style.ts";
import { duration } from "../output/time.ts";
import { latestResources, recordsOf } from "../runs/records.ts";
import { waitForStack, timeoutIn } from "../stacks/wait.ts";
import { hiddenText, seenValue } from "../visibility.ts";
import { eventLine } from "./event-lines.ts";
import { currentOrNextRun } from "./find-run.ts";
import { followRun, type Followed } from "./follow-run.ts";
import { frame, gapText, missingEvents, type Watched } from "./frame.ts";
import { resultReport } from "./result.ts";
import { Screen } from "./screen.ts";

export async function watchStack(context: Context, input: Input): Promise<Report> {
  const stackName = argument(input);
  const timeoutMs = timeoutIn(input);
  const { io } = context;
  await findNamed(context, stacks, stackName);
  const wait = `No update of Stack ${stackName} is running. Waiting for the next one, for ${duration(timeoutMs)} at most.\n`;
  const update = await currentOrNextRun(context, { stackName, timeoutMs, onWait: () => io.err(wait) });
  const isText = (textOption(input, "output") ?? "text") === "text";
  const { followed, isLive } = await watchRun(context, { stackName, update, isText });
  const stack = await recordedStack(context, stackName, followed.update);
  return resultReport({ ...followed, stackName, ...(stack && { stack }) }, { isLive });
}

interface Target {
  readonly stackName: string;
  readonly update: Update;
  /** Otherwise nothing is shown until the end. */
  readonly isText: boolean;
}

interface WatchedRun {
  readonly followed: Followed;
  /** Whether the events were shown one by one. */
  readonly isLive: boolean;
}

async function watchRun(context: Context, { stackName, update, isText }: Target): Promise<WatchedRun> {
  const { io } = context;
  if (!isText) return { followed: await followRun(context, update, { changed: () => undefined }), isLive: false };
  if (!io.isTerminal) {
    const printer = new LinePrinter((text) => io.out(text));
    return { followed: await followRun(context, update, printer), isLive: true };
  }
  const expected = await expectedResources(context, stackName);
  return {
    followed: await drawRun(context, update, { stackName, ...(expected !== undefined && { expected }) }),
    isLive: false,
  };
}

/** Undefined if no record of the Stack lists its resources. */
async function expectedResources(context: Context, stackName: string): Promise<number | undefined> {
  const records = seenValue(await recordsOf(context, stackName)) ?? [];
  return (await latestResources(records))?.content.resources.length;
}

/** So that running times advance without events. */
const redrawMs = 250;

async function drawRun(
  context: Context,
  update: Update,
  more: Pick<Watched, "stackName" | "expected">,
): Promise<Followed> {
  const { io } = context;
  const screen = new Screen(io);
  let state: Followed | undefined;
  const draw = (): void => {
    const { width, height, color } = io;
    const canvas = { width, height, now: io.now(), paint: color ? withColor : withoutColor };
    if (state) screen.draw(frame({ ...state, ...more }, canvas));
  };
  const timer = setInterval(draw, redrawMs);
  try {
    return await followRun(context, update, { changed: (next) => void (state = next) });
  } finally {
    clearInterval(timer);
    screen.close();
  }
}

/** Prints each event once, in the order in which they arrive. */
export class LinePrinter {
  readonly #print: (text: string) => void;
  #last = 0;
  #shownGap = 0;
  #shownHidden = 0;

  constructor(print: (text: string) => void) {
    this.#print = print;
  }

  changed({ log, hidden, update }: Followed): void {
    for (const event of log.events) {
      if (event.seq <= this.#last) continue;
      this.#last = event.seq;
      const line = eventLine(event);
      if (line !== undefined) this.#print(`${line}\n`);
    }
    const missing = missingEvents(log);
    if (missing > this.#shownGap) this.#print(`${gapText(missing)}\n`);
    this.#shownGap = missing;
    for (const each of hidden.slice(this.#shownHidden)) this.#print(`${hiddenText(each)}\n`);
    this.#shownHidden = hidden.length;
    this.#printProgress(update, hidden.length > 0);
  }

  #progress = "";

  /** Without the log, the Update's own progress is all that there is. */
  #printProgress({ status }: Update, isNeeded: boolean): void {
    const { time, current, percent } = status?.progress ?? {};
    const text = `${percent === undefined ? "" : `${percent} %`}${current === undefined ? "" : `  ${current}`}`.trim();
    if (!isNeeded || text === "" || text === this.#progress) return;
    this.#progress = text;
    this.#print(`${time?.slice(11, 19) ?? ""}  ${text}\n`);
  }
}

/** The operator records the result in the Stack right after the run. */
const recordingMs = 15_000;

/** The Stack with the outputs of this run; undefined if it does not record them in time, or runs are not recorded. */
async function recordedStack(context: Context, name: string, { metadata }: Update): Promise<Stack | undefined> {
  const isDone = ({ status }: Stack): boolean => status?.lastUpdate?.name === metadata.name;
  try {
    return await waitForStack(context, { name, timeoutMs: recordingMs, what: "the result", isDone });
  } catch (error) {
    if (context.io.signal.aborted) throw error;
    return undefined;
  }
}
