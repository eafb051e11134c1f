/** Makes an input smaller that has a problem. */
import { problemWith } from "./problem.ts";
import type { Target } from "./target.ts";

const maxAttempts = 2000;
const maxMs = 30_000;

/** Removes parts as long as the problem stays the same. */
export async function minimized(target: Target, input: Uint8Array, problem: string): Promise<Uint8Array> {
  let smallest = input;
  let attempts = 0;
  const deadline = performance.now() + maxMs;
  const hasProblem = async (candidate: Uint8Array): Promise<boolean> => {
    attempts++;
    return (await problemWith(target, candidate)) === problem;
  };
  const isOver = (): boolean => attempts >= maxAttempts || performance.now() > deadline;
  for (let size = Math.ceil(input.length / 2); size >= 1 && !isOver(); size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < smallest.length && !isOver();) {
      const candidate = Buffer.concat([smallest.subarray(0, at), smallest.subarray(at + size)]);
      if (await hasProblem(candidate)) smallest = candidate;
      else at += size;
    }
  }
  return smallest;
}
