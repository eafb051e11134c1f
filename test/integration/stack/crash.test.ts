/** The operator crashes before or after each of its writes: nothing is lost, and nothing is done twice. */
import { expect, test } from "bun:test";
import type { Client } from "@pko/kube";
import { testSeed } from "@pko/testkit";

import { testTimeoutMs, StackScene } from "./scene.ts";
import { live, undisturbedRuns, type Life } from "./life.ts";

type Where = "before" | "after";

/** A client that fails at the nth write, and from then on. */
class CrashingClient {
  readonly client: Client;
  readonly crashed: Promise<void>;
  writes = 0;
  #isCrashed = false;

  constructor(inner: Client, nth: number, where: Where) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.crashed = promise;
    const crashing = async <T>(write: () => Promise<T>): Promise<T> => {
      if (this.#isCrashed) throw new Error("crashed");
      const isLast = ++this.writes === nth;
      const result = isLast && where === "before" ? undefined : await write();
      if (!isLast && result !== undefined) return result;
      if (!isLast) return result as T;
      this.#isCrashed = true;
      resolve();
      throw new Error("crashed");
    };
    this.client = {
      ...inner,
      create: (...args) => crashing(() => inner.create(...args)),
      apply: (...args) => crashing(() => inner.apply(...args)),
      patch: (...args) => crashing(() => inner.patch(...args)),
      delete: (...args) => crashing(() => inner.delete(...args)),
    };
  }
}

/** With FAULTS=all every point; otherwise a sample, which depends on the seed. */
const isComplete = process.env["FAULTS"] === "all";
const sample = 27;
const offset = isComplete ? 0 : testSeed("crash points") % sample;

interface CrashedLife extends Life {
  readonly writes: number;
}

async function liveAndCrash(nth: number, where: Where): Promise<CrashedLife> {
  await using scene = await StackScene.open("without operator");
  const crashing = new CrashingClient(scene.rights.client, nth, where);
  scene.start({ client: crashing.client });
  let isCrashed = false;
  let isOver = false;
  const restart = async (): Promise<void> => {
    await crashing.crashed;
    // While the scene is disposed of, nothing would stop another operator.
    if (isOver) return;
    isCrashed = true;
    await scene.stop();
    scene.start();
  };
  const restarted = restart();
  const life = await live(scene);
  isOver = true;
  if (isCrashed) await restarted;
  return { ...life, writes: crashing.writes };
}

test("a crash before or after any write changes nothing", async () => {
  const undisturbed = await liveAndCrash(Infinity, "before");
  expect(undisturbed.runs).toEqual(undisturbedRuns);
  const points = Array.from({ length: undisturbed.writes }, (_, index) => index + 1)
    .flatMap((nth) => (["before", "after"] as const).map((where) => ({ nth, where })))
    .filter((_, index) => isComplete || index % sample === offset);
  const count = points.length;
  const differences: string[] = [];
  const workers = Array.from({ length: 6 }, async () => {
    for (let point = points.shift(); point; point = points.shift()) {
      const { nth, where } = point;
      try {
        const { runs, seen } = await liveAndCrash(nth, where);
        if (!Bun.deepEquals({ runs, seen }, { runs: undisturbed.runs, seen: undisturbed.seen })) {
          differences.push(`${where} write ${nth}: ${JSON.stringify({ runs, seen })}`);
        }
      } catch (error) {
        differences.push(`${where} write ${nth}: ${String(error)}`);
      }
    }
  });
  await Promise.all(workers);
  console.log(`    ${undisturbed.writes} writes, ${count} crash points`);
  expect(differences).toEqual([]);
}, 600_000);

test(
  "a lost response does not create a second Update",
  async () => {
    await using scene = await StackScene.open("without operator");
    let lost = 0;
    const client: Client = {
      ...scene.rights.client,
      async create(resource, object, options) {
        const created = await scene.rights.client.create(resource, object, options);
        if (resource.kind === "Update" && lost++ === 0) throw new Error("the response is lost");
        return created;
      },
    };
    scene.start({ client });
    await scene.program("program");
    await scene.stack("web");
    await scene.isReady("web");
    expect(scene.runs).toEqual(["up@1"]);
  },
  testTimeoutMs,
);
