/**
 * What the runtime does in the background. The operator mostly waits, so its executable is built to save memory, and hardly compiles
 * any code (build.ts). A start with a long history is different (docs/adr/0031-scale.md).
 */
import { systemClock, type Clock } from "@pko/kube";

interface Runtime {
  residentBytes(): number;
  collectGarbage(): void;
  /** How many times more often than usual code must run before it is compiled. */
  setCompileReluctance(times: number): void;
}

const bunRuntime: Runtime = {
  residentBytes: () => process.memoryUsage.rss(),
  collectGarbage: () => Bun.gc(true),
  setCompileReluctance: (times) => Bun.unsafe.setJITPolicy(times),
};

const checkMs = 250;
/** The runtime collects garbage when its heap has doubled: with a long history, that could exceed the memory limit. */
const growthBytes = 32_000_000;
/** After the first lists, all Stacks are reconciled. */
const firstPassesMs = 30_000;
/** With it, hardly any code is compiled. */
export const compileReluctance = 10_000;

interface TunedProcess {
  /** Whether the stores have been filled. */
  readonly isReady: () => boolean;
  readonly runtime?: Runtime;
  readonly clock?: Clock;
}

/** Collects garbage whenever the process has grown. If it grows before it is ready, there are many objects, and code is compiled. */
export function tuneRuntime({ isReady, runtime = bunRuntime, clock = systemClock }: TunedProcess): void {
  let least = runtime.residentBytes();
  let isCompiling = false;
  const check = (): void => {
    const resident = runtime.residentBytes();
    least = Math.min(least, resident);
    if (resident - least > growthBytes) {
      runtime.collectGarbage();
      least = runtime.residentBytes();
      if (!isCompiling && !isReady()) {
        isCompiling = true;
        runtime.setCompileReluctance(1);
      }
    }
    if (isCompiling && isReady()) {
      isCompiling = false;
      clock.after(firstPassesMs, () => runtime.setCompileReluctance(compileReluctance));
    }
    clock.after(checkMs, check);
  };
  check();
}
