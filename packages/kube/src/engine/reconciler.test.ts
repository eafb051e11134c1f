import { describe, expect, test } from "bun:test";

import { ApiError } from "../client/errors.ts";
import type { Client, PatchOptions } from "../client/client.ts";
import { done, requeueAfter, retry, type Result } from "../controller/queue.ts";
import type { Reconcile, ReconcileContext } from "../controller/controller.ts";
import type { Key, KubeObject, ObjectRef, Resource } from "../resource.ts";
import type { EventNote } from "../telemetry/events.ts";
import { logger } from "../telemetry/log.ts";
import { firstDecision, type Plan } from "./plan.ts";
import { reconciler, type Performed, type ReconcilerDefinition } from "./reconciler.ts";

interface Lamp extends KubeObject {
  readonly status?: { readonly light: string };
}

interface View {
  readonly lamp: Lamp;
  readonly bulb?: string;
  readonly tries?: number;
}

type Step = { readonly kind: "screwIn" } | { readonly kind: "switchOn" };
type LampPlan = Plan<Step, string>;
type Definition = ReconcilerDefinition<Lamp, View, Step, string, number>;

const lamps: Resource<Lamp> = { apiVersion: "example.com/v1", kind: "Lamp", plural: "lamps", namespaced: true };
const lamp: Lamp = {
  apiVersion: "example.com/v1",
  kind: "Lamp",
  metadata: { namespace: "house", name: "desk", resourceVersion: "7" },
};

const failure = (code: number, reason: string): ApiError =>
  new ApiError("patch the status of Lamp desk", { status: code, reason, message: reason });

interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly step?: string;
  readonly error?: unknown;
}

class Room {
  readonly written: [ObjectRef, PatchOptions & { patch: object }][] = [];
  readonly performed: string[] = [];
  readonly events: EventNote[] = [];
  readonly cleaned: Key[] = [];
  readonly memory = new Map<Key, number>();
  /** Thrown by the next status writes, in order. */
  readonly failures: ApiError[] = [];
  readonly logged: LogLine[] = [];

  async reconcile(definition: Partial<Definition> = {}, failures = 0): Promise<Result> {
    return await this.reconciler(definition)("house/desk", this.context({ failures }));
  }

  context(part: Partial<ReconcileContext> = {}): ReconcileContext {
    const { signal } = new AbortController();
    const log = logger({ level: "debug", write: (line) => void this.logged.push(JSON.parse(line) as LogLine) });
    return { now: 1000, monotonic: 5, signal, log, failures: 0, reconcileID: "1", ...part };
  }

  reconciler(definition: Partial<Definition> = {}): Reconcile {
    const client = {
      patch: async (_: unknown, ref: ObjectRef, options: PatchOptions & { patch: object }) => {
        const error = this.failures.shift();
        if (error) throw error;
        this.written.push([ref, options]);
        return { ...lamp, metadata: { ...lamp.metadata, resourceVersion: `${7 + this.written.length}` } };
      },
    };
    return reconciler<Lamp, View, Step, string, number>({
      resource: lamps,
      client: client as unknown as Client,
      fieldManager: "lamps",
      memory: this.memory,
      events: { record: (_, note) => this.events.push(note), flush: () => Promise.resolve() },
      observe: () => ({ lamp }),
      objectIn: (view) => view.lamp,
      plan: () => ({ steps: [], outcome: "dark" }),
      perform: async (step) => {
        this.performed.push(step.kind);
        return { kind: "done" };
      },
      status: (_, { outcome }) => ({ light: outcome }),
      cleanUp: (key) => void this.cleaned.push(key),
      ...definition,
    });
  }

  /** As it was written last. */
  get lamp(): Lamp {
    const status = this.statuses.at(-1) as Lamp["status"];
    const resourceVersion = `${7 + this.written.length}`;
    return { ...lamp, metadata: { ...lamp.metadata, resourceVersion }, ...(status && { status }) };
  }

  get statuses(): unknown[] {
    return this.written.map(([, { patch }]) => (patch as { body: { value: unknown }[] }).body[1]?.value);
  }
}

const planned = (outcome: string, ...kinds: Step["kind"][]): LampPlan => ({
  steps: kinds.map((kind) => ({ kind })),
  outcome,
});

describe("a reconcile", () => {
  test("performs the steps in order, then writes the status for the version that was observed", async () => {
    const room = new Room();
    const result = await room.reconcile({ plan: () => planned("on", "screwIn", "switchOn") });
    expect(room.performed).toEqual(["screwIn", "switchOn"]);
    expect(room.written).toHaveLength(1);
    const [ref, options] = room.written[0] ?? [];
    expect(ref).toEqual({ namespace: "house", name: "desk" });
    expect(options).toMatchObject({ subresource: "status", fieldManager: "lamps" });
    expect(options?.patch).toEqual({
      type: "json",
      body: [
        { op: "replace", path: "/metadata/resourceVersion", value: "7" },
        { op: "add", path: "/status", value: { light: "on" } },
      ],
    });
    expect(result).toEqual(done);
  });

  test("does not write an unchanged status", async () => {
    const room = new Room();
    await room.reconcile({ observe: () => ({ lamp: { ...lamp, status: { light: "dark" } } }) });
    expect(room.written).toEqual([]);
  });

  test("requeues at the time in the plan", async () => {
    const plan = (): LampPlan => ({ ...planned("on"), requeueAt: 4000 });
    expect(await new Room().reconcile({ plan })).toEqual(requeueAfter(3000));
  });

  test("forgets and cleans up an object that does not exist", async () => {
    const room = new Room();
    room.memory.set("house/desk", 3);
    expect(await room.reconcile({ observe: () => undefined })).toEqual(done);
    expect([room.cleaned, room.memory.size, room.written]).toEqual([["house/desk"], 0, []]);
  });
});

describe("what a step learns", () => {
  const plan = ({ bulb }: View): LampPlan =>
    bulb === undefined ? planned("searching", "screwIn", "switchOn") : planned(`with ${bulb}`, "switchOn");

  test("leads to another plan, and the remaining steps are dropped", async () => {
    const room = new Room();
    const perform = async ({ kind }: Step): Promise<Performed<View>> => {
      room.performed.push(kind);
      return kind === "screwIn" ? { kind: "replan", facts: { bulb: "LED" } } : { kind: "done" };
    };
    const seen: LampPlan[] = [];
    await room.reconcile({ plan, perform, publish: (_key, settled) => void seen.push(settled.plan) });
    expect(room.performed).toEqual(["screwIn", "switchOn"]);
    expect(room.statuses).toEqual([{ light: "with LED" }]);
    expect(room.logged).toMatchObject([
      { level: "info", msg: "step led to another plan", step: "screwIn" },
      { level: "info", msg: "step performed", step: "switchOn" },
    ]);
    expect(seen.map(({ steps }) => steps)).toEqual([[{ kind: "switchOn" }]]);
  });

  test("is known to the status and the events, even if it does not change the plan", async () => {
    const room = new Room();
    await room.reconcile({
      plan: () => planned("on", "screwIn"),
      perform: async () => ({ kind: "done", facts: { bulb: "LED" } }),
      status: ({ bulb = "none" }) => ({ light: bulb }),
      eventsOf: ({ bulb = "none" }) => [{ type: "Normal", reason: "Lit", message: bulb }],
    });
    expect(room.statuses).toEqual([{ light: "LED" }]);
    expect(room.events).toEqual([{ type: "Normal", reason: "Lit", message: "LED" }]);
  });

  test("must lead to a final plan", async () => {
    const room = new Room();
    const endless = room.reconcile({
      plan: () => planned("on", "screwIn"),
      perform: async () => ({ kind: "replan", facts: {} }),
    });
    expect(await endless.catch(String)).toContain("no plan settled");
    expect(room.written).toEqual([]);
  });
});

describe("a stale view", () => {
  test("is no error while a deleted object is cleaned up, which is tried again", async () => {
    const room = new Room();
    const cleanUp = () => Promise.reject(failure(409, "Conflict"));
    expect(await room.reconcile({ observe: () => undefined, cleanUp })).toEqual(retry);
    expect(room.logged.map(({ level }) => level)).toEqual(["debug"]);
  });

  const on = (): LampPlan => planned("on", "screwIn", "switchOn");
  const stale: Record<string, () => Promise<Performed<View>>> = {
    "because the step found it so": async () => ({ kind: "stale" }),
    "because of a conflict": () => Promise.reject(failure(409, "Conflict")),
    "because the object was deleted": () => Promise.reject(failure(404, "NotFound")),
  };

  for (const [why, perform] of Object.entries(stale)) {
    test(`${why} is observed again, and nothing is reported`, async () => {
      const room = new Room();
      room.memory.set("house/desk", 3);
      const eventsOf = (): EventNote[] => [{ type: "Normal", reason: "Lit", message: "" }];
      expect(await room.reconcile({ plan: on, perform, eventsOf, remember: () => 4 })).toEqual(retry);
      expect([room.written, room.events, room.memory.get("house/desk")]).toEqual([[], [], 3]);
    });
  }

  test("that only the status write detects is observed again, without events", async () => {
    for (const error of [failure(409, "Conflict"), failure(404, "NotFound")]) {
      const room = new Room();
      room.failures.push(error);
      const eventsOf = (): EventNote[] => [{ type: "Normal", reason: "Lit", message: "" }];
      expect(await room.reconcile({ plan: on, eventsOf })).toEqual(retry);
      expect(room.events).toEqual([]);
    }
  });

  test("is logged, and with its cause as a warning if it stays", async () => {
    const logged = async (failures: number): Promise<LogLine | undefined> => {
      const room = new Room();
      const perform = (): Promise<Performed<View>> => Promise.reject(failure(404, "NotFound"));
      await room.reconcile({ plan: on, perform }, failures);
      return room.logged[0];
    };
    expect(await logged(0)).toMatchObject({ level: "debug", step: "screwIn" });
    const warning = await logged(5);
    expect(warning).toMatchObject({ level: "warn", step: "screwIn" });
    expect(JSON.stringify(warning?.error)).toContain("404");
  });
  test("is not assumed after other errors", async () => {
    const room = new Room();
    room.failures.push(failure(500, "InternalError"));
    expect(await room.reconcile({ plan: on }).catch(String)).toContain("InternalError");
  });
});

describe("a status that the API server rejects", () => {
  test("is replaced by the fallback", async () => {
    const room = new Room();
    room.failures.push(failure(422, "Invalid"));
    await room.reconcile({
      fallbackStatus: (_view, _plan, { reason }) => ({ status: { light: `unknown: ${reason}` } }),
    });
    expect(room.statuses).toEqual([{ light: "unknown: Invalid" }]);
  });

  test("is reported in events, with the facts of the fallback", async () => {
    const room = new Room();
    room.failures.push(failure(422, "Invalid"));
    await room.reconcile({
      fallbackStatus: (_view, _plan, { reason }) => ({ status: { light: "unknown" }, facts: { bulb: reason } }),
      eventsOf: ({ bulb = "none" }) => [{ type: "Warning", reason: "Rejected", message: bulb }],
    });
    expect(room.events).toEqual([{ type: "Warning", reason: "Rejected", message: "Invalid" }]);
  });

  test("makes the view stale if the fallback meets a conflict", async () => {
    const room = new Room();
    room.failures.push(failure(422, "Invalid"), failure(409, "Conflict"));
    expect(await room.reconcile({ fallbackStatus: () => ({ status: { light: "unknown" } }) })).toEqual(retry);
  });
  test("is an error if there is no fallback", async () => {
    const room = new Room();
    room.failures.push(failure(422, "Invalid"));
    expect(await room.reconcile().catch(String)).toContain("Invalid");
  });
});

test("a store that does not show the last write yet is not used", async () => {
  const room = new Room();
  let observed: Lamp = lamp;
  const reconcile = room.reconciler({ observe: () => ({ lamp: observed }), plan: () => planned("on", "screwIn") });
  await reconcile("house/desk", room.context());
  expect(await reconcile("house/desk", room.context())).toEqual(requeueAfter(1000));
  expect([room.performed, room.written.length]).toEqual([["screwIn"], 1]);
  observed = room.lamp;
  expect(await reconcile("house/desk", room.context())).toEqual(done);
  expect(room.performed).toEqual(["screwIn", "screwIn"]);
});

describe("an object of which the store shows a version that the API server does not have", () => {
  const conflict = failure(409, "Conflict");

  test("is reconciled less and less often, however often other objects change", async () => {
    const room = new Room();
    const reconcile = room.reconciler({ plan: () => planned("on", "screwIn") });
    const passes: number[] = [];
    for (let monotonic = 0; monotonic < 60_000; monotonic += 20) {
      room.failures.splice(0, 1, conflict);
      const before = room.performed.length;
      await reconcile("house/desk", room.context({ monotonic }));
      if (room.performed.length > before) passes.push(monotonic);
    }
    expect(passes).toEqual([0, 100, 300, 700, 1500, 3100, 6300, 12700, 25500, 51100]);
    // The first lines are at level debug, because stores are often behind for a moment.
    expect(room.logged.filter(({ level }) => level === "warn")).toHaveLength(5);
  });

  test("is reconciled less often, also if every other pass wants the status that the store shows", async () => {
    const room = new Room();
    let plans = 0;
    const reconcile = room.reconciler({
      observe: () => ({ lamp: { ...lamp, status: { light: "dark" } } }),
      plan: () => (++plans % 2 === 1 ? planned("dark", "screwIn") : planned("on", "switchOn")),
    });
    for (let monotonic = 0; monotonic < 60_000; monotonic += 20) {
      room.failures.splice(0, 1, conflict);
      await reconcile("house/desk", room.context({ monotonic }));
    }
    expect(room.performed.filter((kind) => kind === "screwIn").length).toBeLessThan(20);
  });

  test("is reconciled as soon as the store shows another version", async () => {
    const room = new Room();
    let observed: Lamp = lamp;
    const reconcile = room.reconciler({ observe: () => ({ lamp: observed }), plan: () => planned("on", "screwIn") });
    room.failures.push(conflict);
    expect(await reconcile("house/desk", room.context())).toEqual(retry);
    expect(await reconcile("house/desk", room.context())).toEqual(requeueAfter(100));
    observed = { ...lamp, metadata: { ...lamp.metadata, resourceVersion: "8" } };
    expect(await reconcile("house/desk", room.context())).toEqual(done);
    expect(room.performed).toEqual(["screwIn", "screwIn"]);
  });
});

test("an object that stays in the version before the last write, as after a restored backup, is reconciled", async () => {
  const room = new Room();
  const reconcile = room.reconciler();
  await reconcile("house/desk", room.context({ monotonic: 0 }));
  expect(await reconcile("house/desk", room.context({ monotonic: 119_000 }))).toEqual(requeueAfter(1000));
  expect(await reconcile("house/desk", room.context({ monotonic: 121_000 }))).toEqual(done);
  expect(room.statuses).toEqual([{ light: "dark" }, { light: "dark" }]);
});

describe("a status that only reports progress", () => {
  /** Reconciles at these times; the text before the colon is the state. */
  async function lit(
    passes: readonly (readonly [monotonic: number, light: string])[],
    definition: Partial<Definition> = {},
  ): Promise<{ readonly room: Room; readonly results: Result[] }> {
    const room = new Room();
    let wanted = "";
    const reconcile = room.reconciler({
      observe: () => ({ lamp: room.lamp }),
      plan: () => planned(wanted),
      progress: { without: ({ light }) => light.split(":")[0], everyMs: 1000 },
      ...definition,
    });
    const results: Result[] = [];
    for (const [monotonic, light] of passes) {
      wanted = light;
      results.push(await reconcile("house/desk", room.context({ now: 1000 + monotonic, monotonic })));
    }
    return { room, results };
  }
  const lights = (room: Room): string[] => room.statuses.map((status) => (status as { light: string }).light);

  test("is written an interval after the last one, with the latest text", async () => {
    const { room, results } = await lit([
      [0, "on: 1 %"],
      [100, "on: 20 %"],
      [400, "on: 70 %"],
      [1000, "on: 90 %"],
    ]);
    expect(lights(room)).toEqual(["on: 1 %", "on: 90 %"]);
    expect(results).toEqual([done, requeueAfter(900), requeueAfter(600), done]);
  });

  test("does not delay another state", async () => {
    const { room } = await lit([
      [0, "on: 1 %"],
      [100, "on: 20 %"],
      [200, "off: done"],
    ]);
    expect(lights(room)).toEqual(["on: 1 %", "off: done"]);
  });

  test("is written immediately with an event that reports it", async () => {
    const eventsOf = (): EventNote[] => [{ type: "Normal", reason: "Lit", message: "" }];
    const { room } = await lit(
      [
        [0, "on: 1 %"],
        [100, "on: 20 %"],
      ],
      { eventsOf },
    );
    expect([lights(room), room.events.length]).toEqual([["on: 1 %", "on: 20 %"], 2]);
  });

  test("is written immediately if this process has not written it, or the kind reports no progress", async () => {
    const observe = () => ({ lamp: { ...lamp, status: { light: "on: 1 %" } } });
    expect(lights((await lit([[0, "on: 2 %"]], { observe })).room)).toEqual(["on: 2 %"]);
    const plain = { progress: undefined } as unknown as Partial<Definition>;
    expect(
      lights(
        (
          await lit(
            [
              [0, "on: 1 %"],
              [100, "on: 2 %"],
            ],
            plain,
          )
        ).room,
      ),
    ).toEqual(["on: 1 %", "on: 2 %"]);
  });
});

test("what is remembered is available to the next pass, until there is nothing to remember", async () => {
  const room = new Room();
  const seen: (number | undefined)[] = [];
  const observe: Definition["observe"] = (_key, { memory }) => {
    seen.push(memory);
    return { lamp, tries: (memory ?? 0) + 1 };
  };
  const remember = ({ tries = 0 }: View): number | undefined => (tries < 3 ? tries : undefined);
  for (let pass = 0; pass < 4; pass++) await room.reconcile({ observe, remember });
  expect(seen).toEqual([undefined, 1, 2, undefined]);
});

test("a change of the memory during a pass is not lost", async () => {
  const room = new Room();
  room.memory.set("house/desk", 3);
  await room.reconcile({
    perform: async () => {
      room.memory.set("house/desk", 0);
      return { kind: "done" };
    },
    plan: () => planned("on", "screwIn"),
    remember: (_view, _plan, { memory }) => memory,
  });
  expect(room.memory.get("house/desk")).toBe(0);
});
test("the first rule that applies decides, and it is an error if none applies", () => {
  const rules = [(n: number) => (n > 10 ? "large" : undefined), (n: number) => (n > 5 ? "medium" : undefined)];
  expect([firstDecision(rules, 11), firstDecision(rules, 6)]).toEqual(["large", "medium"]);
  expect(() => firstDecision(rules, 1)).toThrow("no rule applies");
});
