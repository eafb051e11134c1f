/** When a Stack reached each milestone on its way to success, by what the API shows. */
import { isTrue, type KnownPod, type Stack } from "./kinds.ts";
import type { Watch } from "./watch.ts";

type Reached = (watch: Watch, stack: Stack) => boolean;

/** In the order in which they are reached; each phase is named for what it ends with. */
const milestones: readonly (readonly [string, Reached])[] = [
  [
    "the operator has seen it",
    (_, stack) => stack.status !== undefined || (stack.metadata.finalizers?.length ?? 0) > 0,
  ],
  ["Workspace made", (watch, stack) => watch.workspaceOf(stack) !== undefined],
  ["pod made", (watch, stack) => watch.podOf(stack) !== undefined],
  ["pod has a node", (watch, stack) => watch.podOf(stack)?.spec?.nodeName !== undefined],
  ["init containers done", (watch, stack) => isInitialised(watch.podOf(stack))],
  ["container runs", (watch, stack) => isRunning(watch.podOf(stack))],
  ["Workspace ready", (watch, stack) => isTrue(watch.workspaceOf(stack) ?? {}, "Ready")],
  ["Update made", (watch, stack) => watch.updatesOf(stack).length > 0],
  ["Update begun", (watch, stack) => watch.updatesOf(stack).some(({ status }) => status?.startTime !== undefined)],
  ["Update complete", (watch, stack) => watch.updatesOf(stack).some((update) => isTrue(update, "Complete"))],
];

const last = "Stack succeeded";

export const phases: readonly string[] = [...milestones.map(([name]) => name), last];

function isInitialised(pod: KnownPod | undefined): boolean {
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

/** Follows one Stack from now on. */
export class Timeline {
  readonly #reached = new Map<string, number>();
  readonly #end: () => void;

  constructor(watch: Watch, name: string) {
    const look = (): void => {
      const stack = watch.stack(name);
      if (!stack) return;
      for (const [milestone, isReached] of milestones) {
        if (!this.#reached.has(milestone) && isReached(watch, stack)) this.#reached.set(milestone, performance.now());
      }
    };
    this.#end = watch.onChange(look);
  }

  stop(): void {
    this.#end();
  }

  /** What it took from milestone to milestone, from `begin` to the success at `end`. */
  phases(begin: number, end: number): Phase[] {
    return phasesOf(new Map([...this.#reached, [last, end]]), begin);
  }
}

/** One that came before its predecessor took no time; one that was never seen neither. Pure. */
export function phasesOf(reached: ReadonlyMap<string, number>, begin: number): Phase[] {
  let before = begin;
  return phases.map((name) => {
    const at = Math.max(before, reached.get(name) ?? before);
    const ms = at - before;
    before = at;
    return { name, ms };
  });
}
