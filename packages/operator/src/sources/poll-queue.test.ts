import { describe, expect, test } from "bun:test";

import { PollQueue, type Poll, type PollLimits, type StartedPoll } from "./poll-queue.ts";

interface TestPoll extends Poll {
  readonly name: string;
}

const wide: PollLimits = {
  total: 100,
  perHost: 100,
  perNamespace: 100,
  perHostOfNamespace: 100,
  suspects: 100,
  suspectsPerHost: 100,
  suspectsPerNamespace: 100,
};

/** `namespaces/host/number`, with a `!` for a failing server, a `~` for a slow poll, and then a `?` for one that was requested. */
function pollOf(name: string): TestPoll {
  const [namespaces = "", host = ""] = name.split("/");
  return {
    name,
    namespaces: new Set(namespaces.split("+")),
    host,
    endpoint: host,
    isRequested: name.endsWith("?"),
    isSlow: name.includes("~"),
    suspicion: () => (name.includes("!") ? "failing" : name.includes("~") ? "unproven" : undefined),
  };
}

function queueOf(limits: Partial<PollLimits>, ...names: readonly string[]): PollQueue<TestPoll> {
  const queue = new PollQueue<TestPoll>({ ...wide, ...limits });
  for (const name of names) queue.push(pollOf(name));
  return queue;
}

function startAll(queue: PollQueue<TestPoll>): StartedPoll<TestPoll>[] {
  const started: StartedPoll<TestPoll>[] = [];
  for (let next = queue.next(); next; next = queue.next()) started.push(next);
  return started;
}

const namesOf = (started: readonly StartedPoll<TestPoll>[]): string[] => started.map(({ poll }) => poll.name);

const orders: readonly (readonly [string, Partial<PollLimits>, readonly string[], readonly string[]])[] = [
  ["namespaces take turns", {}, ["a/x/1", "a/x/2", "a/x/3", "b/x/1"], ["a/x/1", "b/x/1", "a/x/2", "a/x/3"]],
  ["the servers of a namespace take turns", {}, ["a/x/1", "a/x/2", "a/y/1"], ["a/x/1", "a/y/1", "a/x/2"]],
  ["no more start than the total", { total: 2 }, ["a/x/1", "a/x/2", "b/x/1"], ["a/x/1", "b/x/1"]],
  ["a host has its limit for all namespaces", { perHost: 1 }, ["a/x/1", "b/x/1", "b/y/1"], ["a/x/1", "b/y/1"]],
  [
    "a namespace has its limit for all hosts",
    { perNamespace: 2 },
    ["a/x/1", "a/y/1", "a/z/1", "b/x/1"],
    ["a/x/1", "b/x/1", "a/y/1"],
  ],
  [
    "a namespace has its limit for a host, so that others find a slot there",
    { perHost: 3, perHostOfNamespace: 2 },
    ["a/x/1", "a/x/2", "a/x/3", "a/y/1", "b/x/1"],
    ["a/x/1", "b/x/1", "a/y/1", "a/x/2"],
  ],
  ["suspects of a host have their limit", { suspectsPerHost: 1 }, ["a/x/1~", "b/x/1!", "b/y/1!"], ["a/x/1~", "b/y/1!"]],
  ["suspects have their limit", { suspects: 1 }, ["a/x/1!", "a/y/1!", "a/z/1"], ["a/z/1", "a/x/1!"]],
  [
    "suspects of a namespace have their limit",
    { suspectsPerNamespace: 1 },
    ["a/x/1!", "a/y/1!", "a/z/1", "b/x/1!"],
    ["a/z/1", "b/x/1!", "a/x/1!"],
  ],
  ["a requested poll of a suspect counts as one", { suspects: 1 }, ["a/x/1!", "a/x/2!?", "b/y/1!?"], ["a/x/1!"]],
  ["no poll waits for a slow one of its server", { suspects: 0 }, ["a/x/1~", "a/x/2"], ["a/x/2"]],
  ["two polls test a failing server", {}, ["a/x/1!", "a/x/2!", "a/x/3!"], ["a/x/1!", "a/x/2!"]],
  [
    "each namespace tests a failing server",
    {},
    ["a/x/1!", "a/x/2!", "b/x/1!", "b/x/2!"],
    ["a/x/1!", "b/x/1!", "a/x/2!", "b/x/2!"],
  ],
  ["more polls find out how quick a new server is", {}, ["a/x/1~", "a/x/2~", "a/x/3~"], ["a/x/1~", "a/x/2~", "a/x/3~"]],
  [
    "a requested poll does not wait for those that test its server",
    {},
    ["a/x/1!", "a/x/2!", "a/x/3!?", "a/x/4!?"],
    ["a/x/1!", "a/x/3!?", "a/x/4!?"],
  ],
  ["a poll of two namespaces starts once", {}, ["a+b/x/1", "a/x/2", "b/x/2"], ["a+b/x/1", "b/x/2", "a/x/2"]],
];
for (const [name, limits, pushed, expected] of orders) {
  test(name, () => expect(namesOf(startAll(queueOf(limits, ...pushed)))).toEqual([...expected]));
}

describe("a slot", () => {
  test("is free again when its poll ends", () => {
    const queue = queueOf({ perHost: 1 }, "a/x/1", "a/x/2");
    const [first] = startAll(queue);
    expect([queue.running, queue.waiting]).toEqual([1, 1]);
    first?.end();
    first?.end();
    expect(queue.running).toBe(0);
    expect(namesOf(startAll(queue))).toEqual(["a/x/2"]);
  });

  test("is not taken by a poll that was removed", () => {
    const queue = queueOf({});
    const [one, two] = [pollOf("a/x/1"), pollOf("a/x/2")];
    queue.push(one);
    queue.push(two);
    queue.remove(one);
    expect(queue.oldest).toBe(two);
    expect(namesOf(startAll(queue))).toEqual(["a/x/2"]);
    expect(queue.waiting).toBe(0);
  });
});

test("a poll that a second namespace waits for starts when it is the turn of that namespace", () => {
  const queue = queueOf({ perNamespace: 1 }, "a/x/1");
  startAll(queue);
  const shared = pollOf("a/x/2");
  queue.push(shared);
  expect(startAll(queue)).toEqual([]);
  queue.join(shared, "b");
  expect(namesOf(startAll(queue))).toEqual(["a/x/2"]);
});

test("a poll takes no slot of a namespace that no longer waits for it", () => {
  const queue = queueOf({ perNamespace: 1 }, "a/x/1", "b/x/1");
  const [ofA, ofB] = startAll(queue);
  const shared = pollOf("a+b/x/2");
  queue.push(shared);
  queue.leave(shared, "b");
  ofB?.end();
  expect(startAll(queue)).toEqual([]);
  ofA?.end();
  expect(namesOf(startAll(queue))).toEqual(["a+b/x/2"]);
});

test("a namespace can leave a poll and join it again, and the poll still starts once", () => {
  const queue = queueOf({ suspects: 0 }, "a/x/1!");
  const shared = pollOf("a+b/x/2");
  queue.push(shared);
  for (const namespace of ["a", "b"]) queue.leave(shared, namespace);
  for (const namespace of ["b", "b"]) queue.join(shared, namespace);
  expect(namesOf(startAll(queue))).toEqual(["a+b/x/2"]);
});

describe("a poll whose suspicion changes while it waits", () => {
  test("waits for no slot of suspects if its server responds", () => {
    const queue = new PollQueue<TestPoll>({ ...wide, suspects: 0 });
    let suspicion: "failing" | undefined = "failing";
    queue.push({ ...pollOf("a/x/1"), suspicion: () => suspicion });
    expect(startAll(queue)).toEqual([]);
    suspicion = undefined;
    queue.reconsider("a", "x");
    expect(namesOf(startAll(queue))).toEqual(["a/x/1"]);
  });

  test("does not return to the line of a namespace that no longer waits for it", () => {
    const queue = new PollQueue<TestPoll>({ ...wide, suspects: 0 });
    const server: { suspicion?: "failing" } = { suspicion: "failing" };
    const poll = { ...pollOf("a+b/x/1"), suspicion: () => server.suspicion };
    queue.push(poll);
    queue.leave(poll, "a");
    delete server.suspicion;
    queue.reconsider("a", "x");
    expect(startAll(queue)).toEqual([]);
  });

  test("does not lose the turns of others", () => {
    const queue = queueOf({ suspects: 0 }, "a/x/1!", "a/y/1!", "a/z/1!", "a/v/1");
    expect(namesOf(startAll(queue))).toEqual(["a/v/1"]);
    for (const host of ["z", "x", "y"]) queue.reconsider("a", host);
    queue.push(pollOf("a/w/1"));
    expect([namesOf(startAll(queue)), queue.waiting]).toEqual([["a/w/1"], 3]);
  });

  test("waits for one, and others do not wait for it, if its server fails", () => {
    const queue = new PollQueue<TestPoll>({ ...wide, suspects: 1 });
    const server: { suspicion?: "failing" } = {};
    for (const name of ["a/x/1", "a/x/2"]) queue.push({ ...pollOf(name), suspicion: () => server.suspicion });
    queue.push(pollOf("a/y/1"));
    server.suspicion = "failing";
    const [first, ...others] = startAll(queue);
    expect(namesOf(others)).toEqual(["a/y/1"]);
    first?.end();
    expect(namesOf(startAll(queue))).toEqual(["a/x/2"]);
  });
});

describe("polls of 1,000 namespaces that cannot start", () => {
  const full = ["total", "suspects"] as const;
  test.each(full)("are not tried one by one if all slots are taken: %s", (limit) => {
    const reads = { count: 0 };
    const limits: PollLimits = {
      ...wide,
      [limit]: 1,
      get perNamespace() {
        reads.count++;
        return 100;
      },
    };
    const queue = new PollQueue<TestPoll>(limits);
    for (let index = 0; index < 1000; index++) queue.push(pollOf(`n${index}/h${index}/1~`));
    startAll(queue);
    reads.count = 0;
    expect([queue.next(), reads.count]).toEqual([undefined, 0]);
    queue.push(pollOf("quick/x/1"));
    expect(namesOf(startAll(queue))).toEqual(limit === "total" ? [] : ["quick/x/1"]);
  });
});

test("suspects of a namespace have a turn, however many others of it wait", () => {
  const others = Array.from({ length: 20 }, (_, index) => `a/x/${index}`);
  const started = namesOf(startAll(queueOf({}, ...others, "a/y/1!", "a/z/1!")));
  expect([started.indexOf("a/y/1!"), started.indexOf("a/z/1!")]).toEqual([8, 17]);
});

test("a poll of two namespaces takes the slots of the one in whose turn it starts", () => {
  const queue = queueOf({ suspects: 0 });
  queue.push({ ...pollOf("a+b/x/1"), suspicion: (namespace) => (namespace === "a" ? "failing" : undefined) });
  expect(startAll(queue).map(({ isSuspect }) => isSuspect)).toEqual([false]);
});

test("a tenant with one poll waits for one turn, however many polls the others have", () => {
  const noisy = Array.from({ length: 10_000 }, (_, index) => `noisy/h${index}/1`);
  const queue = queueOf({ total: 256, perNamespace: 64 }, ...noisy);
  expect(startAll(queue)).toHaveLength(64);
  queue.push(pollOf("quiet/x/1"));
  expect(namesOf(startAll(queue))).toEqual(["quiet/x/1"]);
});
