/** The parts of the endpoint that need no network. */
import { createHmac } from "node:crypto";

import { describe, expect, test } from "bun:test";
import type { Receiver, ReceiverSpec } from "@pko/api";
import { manualClock } from "@pko/kube";

import { pushes } from "../shared/channels/pushes.ts";
import { ActiveReceivers, recordingMs } from "./active-receivers.ts";
import { acceptedPush, intake } from "./intake.ts";
import { leaderAddressIn, leaderAnnotations } from "./leader-address.ts";
import { RequestLimits } from "./limits.ts";
import { readBody } from "./read-body.ts";

describe("the limits", () => {
  const admitted = (limits: RequestLimits, namespace: string, count: number): number => {
    let total = 0;
    for (let index = 0; index < count; index++) {
      const admission = limits.admit(namespace);
      if (admission.kind !== "admitted") continue;
      total++;
      admission.end();
    }
    return total;
  };
  /** Requests whose bodies do not arrive. */
  const slow = (limits: RequestLimits, namespace: string, count: number) =>
    Array.from({ length: count }, () => limits.admit(namespace)).filter((each) => each.kind === "admitted");

  test("one namespace may have a burst, and then twenty requests a second", async () => {
    const clock = manualClock();
    const limits = new RequestLimits(clock);
    expect(admitted(limits, "a", 1000)).toBe(100);
    await clock.advance(1000);
    expect(admitted(limits, "a", 1000)).toBe(20);
  });

  test("a namespace does not get a new burst because others have requests", async () => {
    const clock = manualClock();
    const limits = new RequestLimits(clock);
    admitted(limits, "a", 1000);
    await clock.advance(1000);
    admitted(limits, "b", 1);
    expect(admitted(limits, "a", 1000)).toBe(20);
  });

  test("a flood to one namespace leaves the allowance of others", () => {
    const limits = new RequestLimits(manualClock());
    admitted(limits, "a", 100_000);
    expect(admitted(limits, "b", 100)).toBe(100);
  });

  test("all together have a limit", () => {
    const limits = new RequestLimits(manualClock());
    const total = Array.from({ length: 20 }, (_, index) => admitted(limits, `n${index}`, 100));
    expect(total.reduce((sum, count) => sum + count, 0)).toBe(500);
  });

  test("a namespace keeps its allowance while others use up that of all", async () => {
    const clock = manualClock();
    const limits = new RequestLimits(clock);
    for (let index = 0; index < 5; index++) admitted(limits, `n${index}`, 100);
    expect(admitted(limits, "late", 100)).toBe(0);
    await clock.advance(1000);
    expect(admitted(limits, "late", 100)).toBe(100);
  });

  test("few requests of one namespace, and of all, are in memory at the same time", () => {
    const limits = new RequestLimits(manualClock());
    const read = (namespace: string) => slow(limits, namespace, 8).map((each) => each.bodyIsRead());
    expect(read("a")).toHaveLength(8);
    expect(limits.admit("a").kind).toBe("busy");
    expect(["b", "c", "d"].flatMap(read)).toHaveLength(24);
    expect(limits.admit("e").kind).toBe("busy");
  });

  test("slow bodies of one namespace make room for its other requests, and for those of others", () => {
    const limits = new RequestLimits(manualClock());
    const [first, second, ...others] = ["a", "b", "c", "d"].flatMap((namespace) => slow(limits, namespace, 8));
    first?.bodyIsRead();
    expect(limits.admit("e").kind).toBe("admitted");
    expect([first?.signal.aborted, second?.signal.aborted]).toEqual([false, true]);
    expect(limits.admit("d").kind).toBe("admitted");
    expect(others.map(({ signal }) => signal.aborted).indexOf(true)).toBe(24 - 2);
  });
});

describe("a body", () => {
  const clock = manualClock();
  const { signal } = new AbortController();
  const limits = { maxBytes: 10, timeoutMs: 1000, clock, signal };
  const requestWith = (body: BodyInit, headers: Record<string, string> = {}): Request =>
    new Request("https://host/", { method: "POST", body, headers });

  test("is read up to the limit", async () => {
    expect(await readBody(requestWith("0123456789"), limits)).toEqual({
      kind: "read",
      body: Buffer.from("0123456789"),
    });
    expect(await readBody(requestWith("0123456789a"), limits)).toEqual({ kind: "tooLarge" });
  });

  test("is rejected by its announced length, and while it streams if none is announced", async () => {
    expect(await readBody(requestWith("1", { "content-length": "11" }), limits)).toEqual({ kind: "tooLarge" });
    let pulled = 0;
    const endless = new ReadableStream({
      pull: (controller) => {
        pulled++;
        controller.enqueue(new Uint8Array(4));
      },
    });
    expect(await readBody(requestWith(endless), limits)).toEqual({ kind: "tooLarge" });
    expect(pulled).toBeLessThan(10);
  });

  test("must arrive in time", async () => {
    const silent = new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(1)) });
    const reading = readBody(requestWith(silent), limits);
    await clock.advance(1001);
    expect(await reading).toEqual({ kind: "tooSlow" });
  });

  test("is not read on when another request needs the slot", async () => {
    const controller = new AbortController();
    const silent = new ReadableStream({ start: (stream) => stream.enqueue(new Uint8Array(1)) });
    const reading = readBody(requestWith(silent), { ...limits, signal: controller.signal });
    controller.abort();
    expect(await reading).toEqual({ kind: "busy" });
  });
});

describe("what arrives for a Receiver", () => {
  test("wakes its controller at once, and then at most once a minute", async () => {
    const clock = manualClock();
    const active = new ActiveReceivers(clock);
    const woken: number[] = [];
    const start = clock.monotonic();
    active.wake = () => woken.push(clock.monotonic() - start);
    active.activate("a/hooks", Buffer.from("secret"));
    for (let round = 0; round < 100; round++) {
      active.record("a/hooks", { rejection: { at: clock.now(), reason: "badSignature" } });
      await clock.advance(1000);
    }
    expect(woken).toEqual([0, recordingMs]);
    active.record("b/unknown", { rejection: { at: 0, reason: "badSignature" } });
    active.clear();
    await clock.advance(recordingMs * 2);
    expect(woken).toHaveLength(2);
    expect(active.secretOf("a/hooks")).toBeUndefined();
  });
});

test("a flood changes what the controller records at most once a minute", async () => {
  const clock = manualClock();
  const active = new ActiveReceivers(clock);
  active.activate("a/hooks", Buffer.from("secret"));
  const seen = new Set<number | undefined>();
  for (let second = 0; second < 100; second++) {
    active.record("a/hooks", { rejection: { at: second, reason: "badSignature" } });
    await clock.advance(1000);
    seen.add(active.deliveriesOf("a/hooks").rejection?.at);
  }
  expect([...seen]).toEqual([0, 59]);
});

test("the status shows the repository of a webhook without a password", async () => {
  const clock = manualClock();
  const receivers = new ActiveReceivers(clock);
  const secret = Buffer.from("secret");
  receivers.activate("team/hooks", secret);
  const body = Buffer.from(JSON.stringify({ repository: "https://user:sec@ret@git.example/a/web" }));
  const signature = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
  const receiver = { metadata: { name: "hooks", namespace: "team" }, spec: { type: "Generic" } } as Receiver;
  const header = (name: string): string | undefined => (name === "x-signature" ? signature : undefined);
  expect(intake({ receivers, pushes: pushes(), clock })(receiver, { header, body })).toBe("notFollowed");
  await clock.advance(1);
  expect(receivers.deliveriesOf("team/hooks").delivery?.repository).toBe("https://git.example/a/web");
});

describe("a filter", () => {
  const receiverWith = (filter?: ReceiverSpec["filter"]): Receiver => ({
    apiVersion: "auto.pulumi.com/v1alpha1",
    kind: "Receiver",
    metadata: { name: "hooks", namespace: "team" },
    spec: { type: "GitHub", secretRef: { name: "hooks" }, ...(filter && { filter }) },
  });
  const pushed = {
    kind: "push",
    repositories: ["https://git.example/a/web"],
    refs: ["refs/heads/main", "refs/tags/v1"],
  } as const;
  const cases: readonly (readonly [string, ReceiverSpec["filter"], readonly string[] | undefined])[] = [
    ["that is absent accepts everything", undefined, pushed.refs],
    ["accepts a repository by any of its URLs", { repositories: ["git@git.example:a/web.git"] }, pushed.refs],
    ["rejects other repositories", { repositories: ["https://git.example/a/api"] }, undefined],
    ["accepts refs by globs", { refs: ["refs/heads/*"] }, ["refs/heads/main"]],
    ["excludes refs", { refs: ["!refs/tags/**"] }, ["refs/heads/main"]],
    ["rejects other refs", { refs: ["refs/heads/release"] }, undefined],
  ];
  test.each(cases)("%s", (_, filter, refs) => {
    const push = acceptedPush(receiverWith(filter), pushed);
    expect(push).toEqual(refs && { namespace: "team", repositories: pushed.repositories, refs });
  });

  test("of refs that take long to match accepts the rest", () => {
    const refs = Array.from({ length: 1000 }, () => `refs/${"aaaa/".repeat(203)}b`);
    const globs = Array.from({ length: 100 }, () => `**/${"*a/".repeat(100)}*[!b]`);
    const start = performance.now();
    expect(acceptedPush(receiverWith({ refs: globs }), { ...pushed, refs })?.refs).toHaveLength(1000);
    expect(performance.now() - start).toBeLessThan(5000);
  });

  test("of refs does not stop a push that may have changed any", () => {
    const push = acceptedPush(receiverWith({ refs: ["refs/heads/main"] }), { ...pushed, refs: [] });
    expect(push?.refs).toEqual([]);
  });

  test("of repositories applies to pull requests, and one of refs does not", () => {
    const { repositories } = pushed;
    const accepted = (filter: ReceiverSpec["filter"]) =>
      acceptedPush(receiverWith(filter), { kind: "pullRequest", repositories });
    expect(accepted({ refs: ["refs/heads/other"] })).toEqual({
      namespace: "team",
      repositories,
      refs: [],
      isPullRequest: true,
    });
    expect(accepted({ repositories: ["https://git.example/another"] })).toBeUndefined();
  });
});

describe("the leader's address", () => {
  const fingerprint = Array.from({ length: 32 }, () => "AB").join(":");

  test("is read from the annotation that the leader writes", () => {
    for (const host of ["10.1.2.3", "fd00::1"]) {
      const address = { host, port: 9443, fingerprint };
      expect(leaderAddressIn(leaderAnnotations(address))).toEqual(address);
    }
  });

  test.each([
    "",
    "10.1.2.3",
    "10.1.2.3 9443",
    `host 9443 ${fingerprint}`,
    `10.1.2.3 x ${fingerprint}`,
    "10.1.2.3 1 AB",
  ])("is unknown if the annotation is %p", (text) =>
    expect(leaderAddressIn({ "pulumi.com/webhook-leader": text })).toBeUndefined(),
  );
});
