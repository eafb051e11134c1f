/** When a Stack reached each milestone on its way to success, observed through the API. */
import { isTrue, type KnownPod, type Stack } from "./kinds.ts";
import type { Watch } from "./watch.ts";

type Reached = (watch: Watch, stack: Stack) => boolean;

/** In order; each phase is named after the milestone at its end. */
const milestones: readonly (readonly [string, Reached])[] = [
  [
    "reconciled for the first time",
    (_, stack) => stack.status !== undefined || (stack.metadata.finalizers?.length ?? 0) > 0,
  ],
  ["Workspace created", (watch, stack) => watch.workspaceOf(stack) !== undefined],
  ["pod created", (watch, stack) => watch.podOf(stack) !== undefined],
  ["pod scheduled", (watch, stack) => watch.podOf(stack)?.spec?.nodeName !== undefined],
  ["init containers finished", (watch, stack) => isInitialized(watch.podOf(stack))],
  ["container running", (watch, stack) => isRunning(watch.podOf(stack))],
  ["Workspace ready", (watch, stack) => isTrue(watch.workspaceOf(stack) ?? {}, "Ready")],
  ["Update created", (watch, stack) => watch.updatesOf(stack).length > 0],
  ["Update started", (watch, stack) => watch.updatesOf(stack).some(({ status }) => status?.startTime !== undefined)],
  ["Update complete", (watch, stack) => watch.updatesOf(stack).some((update) => isTrue(update, "Complete"))],
];

const last = "Stack succeeded";

export const phases: readonly string[] = [...milestones.map(([name]) => name), last];

function isInitialized(pod: KnownPod | undefined): boolean {
  const inits = pod?.status?.initContainerStatuses;
  return isRunning(pod) || (inits !== undefined && inits.every(({ state }) => state?.terminated?.exitCode === 0));
}

function isRunning(pod: KnownPod | undefined): boolean {
  return (
    pod?.status?.containerStatuses?.some(({ name, state }) => name === "pulumi" && state?.running !== undefined) ??
    false
  );
}

export interface Phase {
  readonly name: string;
  readonly ms: number;
}

/** Observes one Stack from now on. */
export class Timeline {
  readonly #reached = new Map<string, number>();
  readonly #end: () => void;

  constructor(watch: Watch, name: string) {
    const update = (): void => {
      const stack = watch.stack(name);
      if (!stack) return;
      for (const [milestone, isReached] of milestones) {
        if (!this.#reached.has(milestone) && isReached(watch, stack)) this.#reached.set(milestone, performance.now());
      }
    };
    this.#end = watch.onChange(update);
  }

  stop(): void {
    this.#end();
  }

  /** The time between milestones, from `begin` to the success at `end`. */
  phases(begin: number, end: number): Phase[] {
    return splitPhases(new Map([...this.#reached, [last, end]]), begin);
  }
}

/** A milestone that was observed before its predecessor, or never, has a duration of zero. Pure. */
export function splitPhases(reached: ReadonlyMap<string, number>, begin: number): Phase[] {
  let before = begin;
  return phases.map((name) => {
    const at = Math.max(before, reached.get(name) ?? before);
    const ms = at - before;
    before = at;
    return { name, ms };
  });
}
