/** The operator dies before or after every write that it makes: nothing is lost, nothing is done twice. */
import { expect, test } from "bun:test";
import { reconcileRequestAnnotation } from "@pko/api";
import type { Client } from "@pko/kube";
import { updates, workspaces } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { patience, Stage } from "./harness.ts";

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

interface Life {
  readonly runs: readonly string[];
  readonly seen: readonly string[];
  readonly writes: number;
  readonly isOver: boolean;
}

/** A whole life: deployed, a new revision, a request, a failure and its retry, a prerequisite too old, destroyed. */
async function live(nth: number, where: Where): Promise<Life> {
  await using stage = await Stage.set("empty");
  const mortal = new MortalClient(stage.client, nth, where);
  stage.start({ client: mortal.client });
  let isDead = false;
  const revive = async (): Promise<void> => {
    await mortal.died;
    await stage.stop();
    isDead = true;
    stage.start();
  };
  const revival = revive();
  const seen: string[] = [];
  const settle = async (name: string, what: string): Promise<void> => {
    const { status } = await stage.isReady(name);
    const { state, lastSuccessfulCommit, failures, type } = status?.lastUpdate ?? {};
    seen.push(`${what}: ${name} ${type} ${state} ${lastSuccessfulCommit} ${failures}`);
  };
  await stage.program("program");
  await stage.stack("base");
  await settle("base", "created");
  await stage.stack("web", {
    destroyOnFinalize: true,
    prerequisites: [{ name: "base" }],
    workspaceReclaimPolicy: "Delete",
  });
  await settle("web", "created");
  await stage.program("program", "two");
  await stage.isReady("base", "2");
  await stage.isReady("web", "2");
  await settle("web", "changed");
  stage.simulator.script.update = ({ spec }) =>
    spec?.type === "up" ? { end: "failed", message: "no" } : { end: "succeeded" };
  await stage.annotate("web", { [reconcileRequestAnnotation]: "again" });
  await stage.becomes("web", "failed", ({ status }) => status?.lastUpdate?.state === "failed");
  stage.simulator.script.update = () => ({ end: "succeeded" });
  stage.jump(11_000);
  await settle("web", "recovered");
  await stage.delete("web");
  await stage.isGone("web");
  const left = async (): Promise<boolean> => {
    const [ups, spaces] = await Promise.all([
      stage.client.list(updates, { namespace: stage.namespace }),
      stage.client.list(workspaces, { namespace: stage.namespace }),
    ]);
    return ups.items.every(({ metadata }) => metadata.name?.startsWith("base")) && spaces.items.length === 1;
  };
  await waitFor(left, { timeoutMs: 20_000, what: "nothing of web to be left" });
  if (isDead) await revival;
  return { runs: stage.runs.toSorted(), seen, writes: mortal.writes, isOver: !isDead };
}

test("a crash before or after any write changes nothing", async () => {
  const undisturbed = await live(Infinity, "before");
  expect(undisturbed.runs).toEqual(["destroy@2", "up@1", "up@1", "up@2", "up@2", "up@2", "up@2"]);
  const points = Array.from({ length: undisturbed.writes }, (_, index) => index + 1)
    .flatMap((nth) => (["before", "after"] as const).map((where) => ({ nth, where })))
    .filter((_, index) => isWhole || index % sample === offset);
  const count = points.length;
  const differences: string[] = [];
  const workers = Array.from({ length: 6 }, async () => {
    for (let point = points.shift(); point; point = points.shift()) {
      const { nth, where } = point;
      try {
        const { runs, seen } = await live(nth, where);
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
      ...stage.client,
      async create(resource, object, options) {
        const created = await stage.client.create(resource, object, options);
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
