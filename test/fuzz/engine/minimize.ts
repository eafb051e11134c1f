/** Makes an input smaller that has a problem. */
import { problemWith } from "./problem.ts";
import { jsonOf, type Target } from "./target.ts";

const maxAttempts = 2000;
const maxMs = 30_000;

/** Removes parts as long as the problem stays the same. */
export async function minimized(target: Target, input: Uint8Array, problem: string): Promise<Uint8Array> {
  let attempts = 0;
  const deadline = performance.now() + maxMs;
  const attempt: Attempt = async (candidate) => {
    if (++attempts > maxAttempts || performance.now() > deadline) return false;
    return (await problemWith(target, candidate)) === problem;
  };
  const smaller = target.form === "json" ? await minimizedJson(input, attempt) : input;
  return await minimizedBytes(smaller, attempt);
}

/** Whether the candidate has the problem, too. */
type Attempt = (candidate: Uint8Array) => Promise<boolean>;

async function minimizedBytes(input: Uint8Array, attempt: Attempt): Promise<Uint8Array> {
  let smallest = input;
  for (let size = Math.ceil(input.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < smallest.length;) {
      const candidate = Buffer.concat([smallest.subarray(0, at), smallest.subarray(at + size)]);
      if (await attempt(candidate)) smallest = candidate;
      else at += size;
    }
  }
  return smallest;
}

/** Removes the parts of values, the large ones first. */
async function minimizedJson(input: Uint8Array, attempt: Attempt): Promise<Uint8Array> {
  const root: { value?: unknown } = { value: jsonOf(input) };
  let smallest = input;
  const reduce = async (parent: object, key: string): Promise<void> => {
    const value: unknown = Reflect.get(parent, key);
    for (const replacement of [undefined, null]) {
      Reflect.set(parent, key, replacement);
      const candidate = Buffer.from(JSON.stringify(root.value) ?? "null");
      if (candidate.length >= smallest.length || !(await attempt(candidate))) continue;
      smallest = candidate;
      return;
    }
    Reflect.set(parent, key, value);
    if (typeof value !== "object" || value === null) return;
    for (const name of Object.keys(value)) await reduce(value, name);
  };
  try {
    await reduce(root, "value");
  } catch {
    // It is nested too deeply.
  }
  return smallest;
}
