/** Jobs of several queues run side by side, and none before its environment is prepared. */
import { expect, test } from "bun:test";

import type { JobEnvironment } from "./jobs.ts";
import { runPool, type Queue } from "./pool.ts";
import { emptyReport, type Report } from "./report.ts";
import type { Job } from "./suites.ts";

const prepared: JobEnvironment = { temporary: "/nowhere", env: {} };

const queue = (names: string, environment: Queue["environment"] = Promise.resolve(prepared)): Queue => ({
  environment,
  jobs: names.split("").map((name) => ({ name, files: [], suite: "unit", isExclusive: false })),
});

/** Jobs that end when the test says so. */
class Running {
  readonly started: string[] = [];
  readonly #ends = new Map<string, () => void>();

  readonly run = async ({ name }: Job): Promise<Report> => {
    this.started.push(name);
    const end = Promise.withResolvers<void>();
    this.#ends.set(name, end.resolve);
    await end.promise;
    return { ...emptyReport, passed: 1 };
  };

  async end(...names: readonly string[]): Promise<void> {
    for (const name of names) this.#ends.get(name)?.();
    await settled();
  }
}

/** Returns when everything that can continue has continued. */
const settled = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

test("a free place goes to the queue with the fewest jobs running", async () => {
  const jobs = new Running();
  const report = runPool([queue("abc"), queue("xyz")], { width: 2 }, jobs.run);
  await settled();
  expect(jobs.started).toEqual(["a", "x"]);
  await jobs.end("x");
  expect(jobs.started).toEqual(["a", "x", "y"]);
  await jobs.end("a", "y");
  expect(jobs.started.toSorted()).toEqual(["a", "b", "x", "y", "z"]);
  await jobs.end("b", "z");
  await jobs.end("c");
  expect((await report).passed).toBe(6);
});

test("jobs wait for their environment, which takes one of the places while it is prepared", async () => {
  const jobs = new Running();
  const cluster = Promise.withResolvers<JobEnvironment | undefined>();
  const report = runPool([queue("abc"), queue("xy", cluster.promise)], { width: 3 }, jobs.run);
  await settled();
  expect(jobs.started).toEqual(["a", "b"]);
  cluster.resolve(prepared);
  await settled();
  expect(jobs.started).toEqual(["a", "b", "x"]);
  await jobs.end("a", "b", "x");
  await jobs.end("c", "y");
  expect((await report).passed).toBe(5);
});

test("workers without a job wait for an environment that is still being prepared", async () => {
  const jobs = new Running();
  const cluster = Promise.withResolvers<JobEnvironment | undefined>();
  const report = runPool([queue("a"), queue("xyz", cluster.promise)], { width: 3 }, jobs.run);
  await settled();
  await jobs.end("a");
  cluster.resolve(prepared);
  await settled();
  expect(jobs.started).toEqual(["a", "x", "y", "z"]);
  await jobs.end("x", "y", "z");
  expect((await report).passed).toBe(4);
});

test("jobs do not run without their environment", async () => {
  const jobs = new Running();
  const report = runPool([queue("a"), queue("x", Promise.resolve(undefined))], { width: 2 }, jobs.run);
  await settled();
  await jobs.end("a");
  expect((await report).passed).toBe(1);
  expect(jobs.started).toEqual(["a"]);
});

test("a job more starts each time the machine is idle, and none after the last one", async () => {
  const jobs = new Running();
  const idle: (() => void)[] = [];
  const whenIdle = (): Promise<void> => new Promise((resolve) => idle.push(resolve));
  const report = runPool([queue("abcd")], { width: 1, extra: { width: 1, whenIdle } }, jobs.run);
  await settled();
  expect(jobs.started).toEqual(["a"]);
  idle.shift()?.();
  await settled();
  expect(jobs.started).toEqual(["a", "b"]);
  await jobs.end("b");
  expect(jobs.started).toEqual(["a", "b"]);
  await jobs.end("a");
  idle.shift()?.();
  await settled();
  expect(jobs.started).toEqual(["a", "b", "c", "d"]);
  await jobs.end("c", "d");
  expect((await report).passed).toBe(4);
});
