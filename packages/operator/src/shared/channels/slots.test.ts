import { describe, expect, test } from "bun:test";
import type { Condition, Update } from "@pko/api";
import { keyOf, manualClock, metricsRegistry, type ChangeListener, type Key, type Store } from "@pko/kube";

import { updates as kind } from "../../kinds.ts";
import { ofUpdate, slots, starting, type SlotLimits } from "./slots.ts";

type Phase = "new" | "running" | "lost" | "complete";

const rest = { message: "", lastTransitionTime: "2030-01-01T00:00:00Z", observedGeneration: 1 };
const conditions: Readonly<Record<Phase, readonly Condition[]>> = {
  new: [],
  running: [],
  lost: [{ type: "Stalled", status: "True", reason: "NodeLost", ...rest }],
  complete: [{ type: "Complete", status: "True", reason: "Updated", ...rest }],
};

/** The Update of the workspace of this key. */
function update(workspace: Key, phase: Phase, name = "run"): Update {
  const [namespace = "", workspaceName = ""] = workspace.split("/");
  return {
    apiVersion: kind.apiVersion,
    kind: kind.kind,
    metadata: { namespace, name: `${workspaceName}-${name}`, uid: `${workspace}-${name}` },
    spec: { workspaceName, stackName: "dev", type: "up" },
    status: {
      ...(phase !== "new" && { podUid: "pod" }),
      conditions: [...conditions[phase]],
    },
  };
}

/** The claim of the Update of the workspace a/1. */
const run = ofUpdate(update("a/1", "new"));

function tableOf(limits: Partial<SlotLimits> = {}, present: readonly Update[] = []) {
  const clock = manualClock();
  const metrics = metricsRegistry();
  const woken: Key[] = [];
  const objects = new Map(present.map((each) => [keyOf(each), each]));
  const listeners = new Set<ChangeListener<Update>>();
  const store: Pick<Store<Update>, "active" | "subscribe"> = {
    active: () => [...objects.values()],
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const table = slots({
    limits: { total: 1, inNamespace: () => 0, ...limits },
    updates: store,
    wake: (workspace) => woken.push(workspace),
    metrics,
    clock,
  });
  const change = (key: Key, after: Update | undefined): void => {
    const before = objects.get(key);
    if (after) objects.set(key, after);
    else objects.delete(key);
    for (const listener of listeners) listener({ key, ...(before && { before }), ...(after && { after }) });
  };
  const set = (after: Update): void => change(keyOf(after), after);
  const remove = (before: Update): void => change(keyOf(before), undefined);
  const kinds = (...workspaces: Key[]): string[] => workspaces.map((each) => table.state(each).kind);
  return { table, clock, metrics, woken, listeners, set, remove, kinds };
}

describe("a slot", () => {
  test("is wanted by who would get it: of the same namespace, or of another that may have more", () => {
    const isWanted = (limits: Partial<SlotLimits>, held: readonly Key[], waiting: Key): boolean => {
      const { table } = tableOf(limits);
      for (const each of held) table.claim(each, "stack");
      expect(table.claim(waiting, "stack").kind).toBe("waiting");
      const state = table.state("a/1");
      return state.kind === "held" && state.isWanted;
    };
    const inNamespace = (): number => 1;
    expect(isWanted({ total: 1 }, ["a/1"], "a/2")).toBe(true);
    expect(isWanted({ total: 1 }, ["a/1"], "b/1")).toBe(true);
    expect(isWanted({ total: 3, inNamespace }, ["a/1"], "a/2")).toBe(true);
    expect(isWanted({ total: 3, inNamespace }, ["a/1", "b/1"], "b/2")).toBe(false);
    expect(isWanted({ total: 2, inNamespace }, ["a/1", "b/1"], "b/2")).toBe(false);
    expect(isWanted({ total: 2, inNamespace }, ["a/1", "b/1"], "c/1")).toBe(true);
  });

  test("is given to the first, and to the next when it is returned", () => {
    const { table, woken, kinds } = tableOf();
    expect(table.claim("a/1", "stack")).toEqual({ kind: "held", forMs: 0, isWanted: false });
    expect(table.claim("a/2", "stack")).toMatchObject({ kind: "waiting", position: 1, total: 1 });
    expect(woken).toEqual([]);
    table.withdraw("a/1", "stack");
    expect(kinds("a/1", "a/2")).toEqual(["none", "held"]);
    expect(woken).toEqual(["a/2"]);
  });

  test("is held while anyone needs it", () => {
    const { table, kinds } = tableOf();
    for (const by of ["stack", "workspace", run] as const) table.claim("a/1", by);
    table.withdraw("a/1", "stack");
    table.withdraw("a/1", run);
    expect(kinds("a/1")).toEqual(["held"]);
    table.withdraw("a/1", "workspace");
    expect(kinds("a/1")).toEqual(["none"]);
  });

  test("is for one run: when it ends, the next workspace gets it", () => {
    const { table, set, kinds } = tableOf();
    table.claim("a/1", "stack");
    table.claim("a/2", "stack");
    set(update("a/1", "new"));
    set(update("a/1", "running"));
    expect(kinds("a/1", "a/2")).toEqual(["held", "waiting"]);
    set(update("a/1", "complete"));
    expect(kinds("a/1", "a/2")).toEqual(["none", "held"]);
    expect(table.claim("a/1", "stack").kind).toBe("waiting");
  });

  test("stays with the Stack if its Update is deleted before it starts", () => {
    const { table, set, remove, kinds } = tableOf();
    table.claim("a/1", "stack");
    table.claim("a/1", run);
    set(update("a/1", "new"));
    remove(update("a/1", "new"));
    expect(kinds("a/1")).toEqual(["held"]);
  });

  test("is returned if the only Update is deleted, before or after its start", () => {
    for (const phase of ["new", "running"] as const) {
      const { table, set, remove, kinds } = tableOf();
      table.claim("a/1", run);
      set(update("a/1", phase));
      remove(update("a/1", phase));
      expect(kinds("a/1")).toEqual(["none"]);
    }
  });

  test("stays with an Update if another one of its workspace is deleted before it starts", () => {
    const { table, set, remove, kinds } = tableOf();
    for (const name of ["first", "second"]) {
      set(update("a/1", "new", name));
      table.claim("a/1", ofUpdate(update("a/1", "new", name)));
    }
    table.claim("a/2", "stack");
    remove(update("a/1", "new", "first"));
    expect(kinds("a/1", "a/2")).toEqual(["held", "waiting"]);
    remove(update("a/1", "new", "second"));
    expect(kinds("a/1", "a/2")).toEqual(["none", "held"]);
  });

  test("is not taken from an Update that is about to start, or runs", () => {
    const { table, set, kinds } = tableOf();
    table.claim("a/1", "stack");
    table.claim("a/1", starting(update("a/1", "new")));
    table.giveUp("a/1");
    expect(kinds("a/1")).toEqual(["held"]);
    set(update("a/1", "running"));
    table.clear();
    expect(kinds("a/1")).toEqual(["held"]);
  });

  test("is given up by a workspace in which nothing can start", () => {
    const { table, kinds } = tableOf();
    for (const by of ["stack", "workspace", run] as const) table.claim("a/1", by);
    table.claim("a/2", "stack");
    table.giveUp("a/1");
    expect(kinds("a/1", "a/2")).toEqual(["none", "held"]);
  });

  test("is still awaited by a Stack that wants to fix a failed workspace", () => {
    const { table, kinds } = tableOf();
    table.claim("a/1", "stack");
    table.claim("a/2", "stack");
    table.claim("a/2", "workspace");
    table.giveUp("a/2");
    expect(kinds("a/2")).toEqual(["waiting"]);
    table.withdraw("a/1", "stack");
    expect(kinds("a/2")).toEqual(["held"]);
    table.withdraw("a/2", "stack");
    expect(kinds("a/2")).toEqual(["none"]);
  });

  test("is not blocked by an Update whose node may be lost", () => {
    const { table, set, kinds } = tableOf();
    table.claim("a/1", "stack");
    set(update("a/1", "running"));
    set(update("a/1", "lost"));
    expect(table.claim("a/2", "stack").kind).toBe("held");
    // The node is back.
    set(update("a/1", "running"));
    expect(kinds("a/1", "a/2")).toEqual(["held", "held"]);
  });

  test("is returned if a running Update is replaced by one of another workspace with the same name", () => {
    const { set, kinds } = tableOf({ total: 2 });
    const before = update("a/1", "running");
    set(before);
    const other = update("a/2", "running");
    set({ ...other, metadata: { ...other.metadata, name: before.metadata.name ?? "" } });
    expect(kinds("a/1", "a/2")).toEqual(["none", "held"]);
  });

  test("is taken back after an hour if nothing runs, in case every pass of its claimant fails", async () => {
    const { table, clock, set, kinds, woken } = tableOf({ total: 2 });
    table.claim("a/1", "stack");
    table.claim("a/2", "stack");
    set(update("a/2", "running"));
    expect(table.claim("b/1", "stack").kind).toBe("waiting");
    await clock.advance(3_599_999);
    expect(kinds("b/1")).toEqual(["waiting"]);
    await clock.advance(30_000);
    expect(kinds("b/1", "a/1", "a/2")).toEqual(["held", "none", "held"]);
    expect(woken).toContain("b/1");
  });

  test("wakes its Workspace if an Update takes it, because the Workspace ignored that Update", () => {
    const { table, woken } = tableOf();
    table.claim("a/1", run);
    expect(woken).toEqual(["a/1"]);
  });
});

describe("after a restart", () => {
  test("running Updates hold their slots before anyone else gets one", () => {
    const { table, kinds } = tableOf({ total: 2 }, [update("a/1", "running"), update("a/2", "running")]);
    expect(table.claim("b/1", "stack").kind).toBe("waiting");
    expect(kinds("a/1", "a/2")).toEqual(["held", "held"]);
  });

  test("more run than the new limit allows: nobody else starts until fewer run", () => {
    const { table, set, kinds } = tableOf({}, [update("a/1", "running"), update("a/2", "running")]);
    table.claim("b/1", "stack");
    set(update("a/1", "complete"));
    expect(kinds("b/1")).toEqual(["waiting"]);
    set(update("a/2", "complete"));
    expect(kinds("b/1")).toEqual(["held"]);
  });

  test("who waited longest is first again", () => {
    const { table, clock, set, kinds } = tableOf({}, [update("a/1", "running")]);
    table.claim("a/2", "stack", { rank: clock.now() });
    table.claim("a/3", "stack", { rank: clock.now() - 60_000 });
    set(update("a/1", "complete"));
    expect(kinds("a/2", "a/3")).toEqual(["waiting", "held"]);
  });

  test("finished Updates and Updates that have not started hold none", () => {
    const { kinds } = tableOf({}, [update("a/1", "complete"), update("a/2", "new"), update("a/3", "lost")]);
    expect(kinds("a/1", "a/2", "a/3")).toEqual(["none", "none", "none"]);
  });
});

describe("limits", () => {
  test("0 is no limit", () => {
    const { table } = tableOf({ total: 0 });
    const states = Array.from({ length: 100 }, (_, index) => table.claim(`a/${index}`, "stack").kind);
    expect(new Set(states)).toEqual(new Set(["held"]));
  });

  test("of a namespace: its others wait, and other namespaces do not", () => {
    const { table } = tableOf({ total: 3, inNamespace: (namespace) => (namespace === "a" ? 1 : 0) });
    expect(table.claim("a/1", "stack").kind).toBe("held");
    expect(table.claim("a/2", "stack")).toMatchObject({ kind: "waiting", limitOf: "namespace", limit: 1 });
    expect(table.claim("b/1", "stack").kind).toBe("held");
    expect(table.claim("b/2", "stack").kind).toBe("held");
    expect(table.claim("b/3", "stack")).toMatchObject({ kind: "waiting", limitOf: "operator", limit: 3 });
  });
});

test("a raised limit counts when a waiting Stack is requeued for its position, although nobody claims", async () => {
  let limit = 1;
  const { table, clock, kinds, woken } = tableOf({ total: 0, inNamespace: () => limit });
  for (const workspace of ["a/1", "a/2", "a/3"]) table.claim(workspace, "stack");
  limit = 2;
  expect(kinds("a/2", "a/3")).toEqual(["waiting", "waiting"]);
  await clock.advance(30_000);
  expect(kinds("a/3", "a/2")).toEqual(["waiting", "held"]);
  expect(woken).toEqual(["a/2"]);
});

test("who was served is forgotten when nobody holds or awaits a slot", () => {
  const { table, kinds } = tableOf();
  table.claim("a/1", "stack");
  table.withdraw("a/1", "stack");
  for (const workspace of ["c/1", "a/2", "b/1"]) table.claim(workspace, "stack");
  table.withdraw("c/1", "stack");
  expect(kinds("a/2", "b/1")).toEqual(["held", "waiting"]);
});

test("the position that is shown changes every 30 seconds, and more rarely far back in the queue", async () => {
  const { table, clock } = tableOf();
  for (let index = 0; index <= 100; index++) table.claim(`a/${index}`, "stack");
  const shown = (key: Key) => table.state(key) as { position: number; refreshAt: number };
  expect([shown("a/10").position, shown("a/100").position]).toEqual([10, 100]);
  expect(shown("a/10").refreshAt - clock.now()).toBe(30_000);
  expect(shown("a/100").refreshAt - clock.now()).toBe(100_000);
  table.withdraw("a/0", "stack");
  expect(shown("a/10").position).toBe(10);
  await clock.advance(30_000);
  expect([shown("a/10").position, shown("a/100").position]).toEqual([9, 100]);
});

test("metrics show the limit, who holds and who waits for slots, and for how long", async () => {
  const { table, clock, metrics } = tableOf();
  table.claim("a/1", "stack");
  table.claim("b/1", "stack");
  table.claim("b/2", "stack");
  const lines = (): string => metrics.expose();
  expect(lines()).toContain("update_slots_limit 1\n");
  expect(lines()).toContain('update_slots_in_use{namespace="a"} 1\n');
  expect(lines()).toContain('update_slots_waiting{namespace="b"} 2\n');
  await clock.advance(20_000);
  table.withdraw("a/1", "stack");
  expect(lines()).not.toContain('namespace="a"');
  expect(lines()).toContain('update_slots_waiting{namespace="b"} 1\n');
  expect(lines()).toContain('update_slot_wait_seconds_bucket{le="15"} 1\n');
  expect(lines()).toContain('update_slot_wait_seconds_bucket{le="60"} 2\n');
});

test("metrics show since when the longest wait for a slot in a namespace lasts, also if it began before a restart", async () => {
  const { table, clock, metrics } = tableOf();
  table.claim("a/1", "stack");
  const began = clock.now() - 600_000;
  table.claim("b/1", "stack");
  table.claim("b/2", "stack", { rank: began, since: began });
  const since = (): string[] => metrics.expose().match(/^update_slots_waiting_since_timestamp_seconds.*$/gm) ?? [];
  const seriesAt = (ms: number): string => `update_slots_waiting_since_timestamp_seconds{namespace="b"} ${ms / 1000}`;
  expect(since()).toEqual([seriesAt(began)]);
  await clock.advance(20_000);
  expect(since()).toEqual([seriesAt(began)]);
  table.withdraw("b/2", "stack");
  expect(since()).toEqual([seriesAt(clock.now() - 20_000)]);
  table.withdraw("b/1", "stack");
  expect(since()).toEqual([]);
});

test("metrics show the waits of all namespaces, because an alert must not miss one", () => {
  const { table, metrics } = tableOf();
  for (let index = 0; index <= 1500; index++) table.claim(`n${index}/1`, "stack");
  expect(metrics.expose().match(/^update_slots_waiting_since_timestamp_seconds.*$/gm)).toHaveLength(1500);
});

test("metrics show the begin of a wait, not the rank of the workspace", () => {
  const { table, clock, metrics } = tableOf();
  table.claim("a/1", "stack");
  table.claim("b/1", "stack", { rank: 0 });
  table.claim("c/1", ofUpdate(update("c/1", "new")), { rank: clock.now() - 3_900_000 });
  const waits = metrics.expose().match(/(?<=^update_slots_waiting_since_timestamp_seconds.*} ).*$/gm);
  expect(waits).toEqual([String(clock.now() / 1000), String(clock.now() / 1000)]);
});
