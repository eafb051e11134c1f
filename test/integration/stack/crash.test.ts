/** The operator dies before or after every write that it makes: nothing is lost, nothing is done twice. */
import { expect, test } from "bun:test";
import type { Client } from "@pko/kube";

import { patience, Stage } from "./harness.ts";
import { live, undisturbedRuns, type Life } from "./life.ts";

type Where = "before" | "after";

/** A client that dies at the nth write, and for good. */
class MortalClient {
  readonly client: Client;
  readonly died: Promise<void>;
  writes = 0;
  #isDead = false;

  constructor(inner: Client, nth: number, where: Where) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.died = promise;
    const mortal = async <T>(write: () => Promise<T>): Promise<T> => {
      if (this.#isDead) throw new Error("dead");
      const isLast = ++this.writes === nth;
      const result = isLast && where === "before" ? undefined : await write();
      if (!isLast && result !== undefined) return result;
      if (!isLast) return result as T;
      this.#isDead = true;
      resolve();
      throw new Error("dead");
    };
    this.client = {
      ...inner,
      create: (...args) => mortal(() => inner.create(...args)),
      apply: (...args) => mortal(() => inner.apply(...args)),
      patch: (...args) => mortal(() => inner.patch(...args)),
      delete: (...args) => mortal(() => inner.delete(...args)),
    };
  }
}

/** With FAULTS=all every point; otherwise one of so many, others every time. */
const isWhole = process.env["FAULTS"] === "all";
const sample = 9;
const offset = Math.floor(Math.random() * sample);

interface Death extends Life {
  readonly writes: number;
}

async function liveAndDie(nth: number, where: Where): Promise<Death> {
  await using stage = await Stage.set("empty");
  const mortal = new MortalClient(stage.rights.client, nth, where);
  stage.start({ client: mortal.client });
  let isDead = false;
  const revive = async (): Promise<void> => {
    await mortal.died;
    isDead = true;
    await stage.stop();
    stage.start();
  };
  const revival = revive();
  const life = await live(stage);
  if (isDead) await revival;
  return { ...life, writes: mortal.writes };
}

test("a crash before or after any write changes nothing", async () => {
  const undisturbed = await liveAndDie(Infinity, "before");
  expect(undisturbed.runs).toEqual(undisturbedRuns);
  const points = Array.from({ length: undisturbed.writes }, (_, index) => index + 1)
    .flatMap((nth) => (["before", "after"] as const).map((where) => ({ nth, where })))
    .filter((_, index) => isWhole || index % sample === offset);
  const count = points.length;
  const differences: string[] = [];
  const workers = Array.from({ length: 6 }, async () => {
    for (let point = points.shift(); point; point = points.shift()) {
      const { nth, where } = point;
      try {
        const { runs, seen } = await liveAndDie(nth, where);
        if (!Bun.deepEquals({ runs, seen }, { runs: undisturbed.runs, seen: undisturbed.seen })) {
          differences.push(`${where} write ${nth}: ${JSON.stringify({ runs, seen })}`);
        }
      } catch (error) {
        differences.push(`${where} write ${nth}: ${String(error)}`);
      }
    }
  });
  await Promise.all(workers);
  console.log(`    ${undisturbed.writes} writes, ${count} points of death`);
  expect(differences).toEqual([]);
}, 600_000);

test(
  "an answer that is lost is no second Update",
  async () => {
    await using stage = await Stage.set("empty");
    let lost = 0;
    const client: Client = {
      ...stage.rights.client,
      async create(resource, object, options) {
        const created = await stage.rights.client.create(resource, object, options);
        if (resource.kind === "Update" && lost++ === 0) throw new Error("the answer is lost");
        return created;
      },
    };
    stage.start({ client });
    await stage.program("program");
    await stage.stack("web");
    await stage.isReady("web");
    expect(stage.runs).toEqual(["up@1"]);
  },
  patience,
);
