/** Whether the properties of a target hold for an input. */
import type { Target } from "./target.ts";

/** Of CPU time. The slowest input that takes linear time needs less than a fifth of it, one that takes quadratic time a multiple. */
const maxMs = 5000;

/** A property that does not hold; undefined if all of them do. */
export async function problemWith(target: Target, input: Uint8Array): Promise<string | undefined> {
  const started = performance.now();
  const problem = await problemOf(() => target.check(input));
  if (problem !== undefined || performance.now() - started < maxMs) return problem;
  // It may have waited for the CPU, or for the garbage collector.
  const before = process.cpuUsage();
  await problemOf(() => target.check(input));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 < maxMs ? undefined : `takes more than ${maxMs / 1000} s of CPU time`;
}

export async function problemOf(check: () => void | Promise<void>): Promise<string | undefined> {
  try {
    await check();
    return undefined;
  } catch (error) {
    return describe(error);
  }
}

/** Without what depends on the input, so that the same mistake is reported once. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return `throws ${typeof error}`;
  if (error.name === "Violation") return error.message;
  const frame = /\/packages\/([^:)]+)/.exec(error.stack ?? "")?.[1] ?? "the runtime";
  return `${error.name} in ${frame}: ${error.message.replaceAll(/["'`].*["'`]|\d+/gs, "…").slice(0, 120)}`;
}
