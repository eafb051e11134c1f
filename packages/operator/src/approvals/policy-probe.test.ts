import { describe, expect, test } from "bun:test";
import { ApiError, ConnectionError, manualClock, type Client } from "@pko/kube";

import { policyProbe } from "./policy-probe.ts";

const denied = new ApiError("POST", {
  status: 422,
  reason: "Invalid",
  message:
    "approvals.auto.pulumi.com \"approval-policy-probe\" is forbidden: ValidatingAdmissionPolicy 'approvals.auto.pulumi.com' " +
    "with binding 'approvals.auto.pulumi.com' denied request: spec.decidedBy: must be the name of the user who creates the Approval",
});
const withoutPermission = new ApiError("POST", {
  status: 403,
  reason: "Forbidden",
  message:
    'approvals.auto.pulumi.com is forbidden: User "decidedBy" cannot create resource "approvals" in API group "auto.pulumi.com" ' +
    'in the namespace "team"',
});
const otherRule = new ApiError("POST", {
  status: 422,
  reason: "Invalid",
  message: 'Approval "approval-policy-probe" is invalid: spec.decidedBy: Too long: may not be more than 1024 bytes',
});
const terminating = new ApiError("POST", {
  status: 403,
  reason: "Forbidden",
  message:
    'approvals.auto.pulumi.com "approval-policy-probe" is forbidden: unable to create new content in namespace team because ' +
    "it is being terminated",
});
const patchError = (status: number, message: string) => new ApiError("PATCH", { status, reason: "Invalid", message });
const weakeningDenied = patchError(
  422,
  "stacks.pulumi.com \"web\" is forbidden: ValidatingAdmissionPolicy 'stack-safeguards.pulumi.com' with binding " +
    "'stack-safeguards.pulumi.com' denied request: spec.approval.required: must not be lowered while the annotation is set",
);
const notFound = patchError(404, 'stacks.pulumi.com "web" not found');
const changedMeanwhile = patchError(422, "the server rejected our request due to an error in our request");
const unreachable = new ConnectionError("POST", { code: "ECONNREFUSED" });

type Answer = Error | undefined;

/** An API server whose answers a test changes; undefined accepts the Approval, or the Stack of that name without `approval`. */
function setting(first: Answer, ofStacks: Readonly<Record<string, Answer>> = {}) {
  const clock = manualClock();
  const checks: string[] = [];
  const woken: string[] = [];
  const server = { answer: first, delay: Promise.resolve() };
  const create: Client["create"] = async (_, object, options) => {
    expect(options?.dryRun).toBe(true);
    checks.push(object.metadata.namespace ?? "");
    const { answer, delay } = server;
    await delay;
    if (answer) throw answer;
    return object;
  };
  const patch: Client["patch"] = async (_, { name }, { dryRun }) => {
    expect(dryRun).toBe(true);
    const answer = name in ofStacks ? ofStacks[name] : weakeningDenied;
    if (answer) throw answer;
    return {} as never;
  };
  const probe = policyProbe({ client: { create, patch }, clock });
  const follow = (user: string, namespace = "team"): void =>
    probe.follow(user, { namespace, name: user, required: "Always", wake: () => woken.push(user) });
  return { clock, checks, woken, server, probe, follow };
}

describe("the admission policy for Approvals", () => {
  const answers = [
    ["is in force if it denies an Approval in the name of another user", denied, "inForce"],
    ["is missing if such an Approval is accepted", undefined, "missing"],
    ["is unverified if the operator may not create Approvals", withoutPermission, "unverified"],
    ["is unverified if another rule denies the Approval", otherRule, "unverified"],
    ["is unverified if the API server does not respond", unreachable, "unverified"],
    ["cannot be checked in a namespace that is being deleted", terminating, "namespaceTerminating"],
  ] as const;
  for (const [sentence, answer, kind] of answers) {
    test(sentence, async () => {
      const { clock, probe, follow } = setting(answer);
      expect(probe.state("team").kind).toBe("unknown");
      follow("web");
      await clock.advance(0);
      expect(probe.state("team").kind).toBe(kind);
    });
  }

  const safeguards = [
    [
      "is missing if approvals can be removed from a Stack",
      { web: undefined },
      { kind: "missing", policy: "safeguards" },
    ],
    ["is in force if it denies that", { web: weakeningDenied }, { kind: "inForce" }],
    ["is unknown if all Stacks were deleted", { web: notFound, shop: notFound }, { kind: "unknown" }],
    ["is checked with another Stack if one was deleted", { web: notFound }, { kind: "inForce" }],
    ["is checked with another Stack if one was changed", { web: changedMeanwhile }, { kind: "inForce" }],
    ["is unverified if no Stack can answer", { web: changedMeanwhile, shop: changedMeanwhile }, { kind: "unverified" }],
    ["is unverified if the operator may not patch Stacks", { web: withoutPermission }, { kind: "unverified" }],
  ] as const;
  for (const [sentence, answers, expected] of safeguards) {
    test(`for Stacks ${sentence}`, async () => {
      const { clock, probe, follow } = setting(denied, answers);
      follow("web");
      follow("shop");
      await clock.advance(0);
      expect(probe.state("team")).toMatchObject(expected);
    });
  }

  test("requeues the Stacks when another policy is missing", async () => {
    const { clock, woken, server, probe, follow } = setting(undefined, { web: undefined });
    follow("web");
    await clock.advance(0);
    expect(probe.state("team")).toEqual({ kind: "missing", policy: "approvals" });
    server.answer = denied;
    await clock.advance(60_000);
    expect(probe.state("team")).toEqual({ kind: "missing", policy: "safeguards" });
    expect(woken).toEqual(["web", "web"]);
  });

  test("is not checked while no Stack requires approvals", async () => {
    const { clock, checks, probe, follow } = setting(denied);
    await clock.advance(600_000);
    follow("web");
    probe.forget("web");
    await clock.advance(600_000);
    expect(checks).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  test("is enough where only a WorkspaceClass requires approvals, until a Stack does, too", async () => {
    const { clock, woken, probe, follow } = setting(denied, { shop: undefined });
    probe.follow("web", { namespace: "team", name: "web", wake: () => woken.push("web") });
    await clock.advance(0);
    expect(probe.state("team")).toEqual({ kind: "inForce" });
    // Its `approval` can be removed.
    follow("shop");
    expect(probe.state("team")).toEqual({ kind: "unknown" });
    await clock.advance(0);
    expect(probe.state("team")).toEqual({ kind: "missing", policy: "safeguards" });
  });

  test("is checked rarely while nothing starts: a few namespaces an hour, however many there are, one at a time", async () => {
    const { clock, checks, follow } = setting(denied);
    const namespaces = Array.from({ length: 100 }, (_, index) => `team-${index}`);
    for (const namespace of namespaces) follow(`${namespace}/web`, namespace);
    await clock.advance(0);
    expect(checks).toEqual(namespaces);
    for (let hour = 0; hour < 10; hour++) {
      checks.length = 0;
      await clock.advance(3_600_000);
      expect(checks).toHaveLength(10);
      expect(new Set(checks).size).toBe(10);
    }
  });

  test("is checked once a minute in a namespace in which something may start, however many Stacks require it", async () => {
    const { clock, checks, probe, follow } = setting(denied);
    follow("web");
    follow("shop");
    follow("api", "other");
    await clock.advance(0);
    probe.need("team");
    checks.length = 0;
    await clock.advance(840_000);
    const own = checks.filter((namespace) => namespace === "team").length;
    expect(own).toBeGreaterThanOrEqual(12);
    expect(own).toBeLessThanOrEqual(16);
    expect(checks.length - own).toBeLessThanOrEqual(3);
    await clock.advance(120_000);
    checks.length = 0;
    await clock.advance(3_600_000);
    expect(checks).toHaveLength(10);
  });

  test("is checked again before anything starts, and the pass that waits for it is repeated", async () => {
    const { clock, checks, woken, probe, follow } = setting(denied);
    follow("web");
    await clock.advance(59_999);
    expect(probe.state("team").kind).toBe("inForce");
    await clock.advance(1);
    expect(probe.state("team").kind).toBe("unknown");
    [checks.length, woken.length] = [0, 0];
    for (const user of ["a", "b"]) probe.need("team", () => woken.push(user));
    expect(probe.state("team").kind).toBe("unknown");
    await clock.advance(0);
    expect(probe.state("team").kind).toBe("inForce");
    expect(checks).toEqual(["team"]);
    expect(woken).toEqual(["a", "b", "web"]);
    // As long as something may start.
    await clock.advance(600_000);
    expect(probe.state("team").kind).toBe("inForce");
  });

  test("is not in force if it was before, and cannot be checked when something is to start", async () => {
    for (const [answer, kind] of [
      [undefined, "missing"],
      [unreachable, "unverified"],
      [terminating, "namespaceTerminating"],
    ] as const) {
      const { clock, server, probe, follow } = setting(denied);
      follow("web");
      await clock.advance(60_000);
      server.answer = answer;
      probe.need("team");
      await clock.advance(0);
      expect(probe.state("team").kind).toBe(kind);
    }
  });

  test("does not count as checked while the API server does not respond, and nothing starts", async () => {
    const { clock, server, probe, follow } = setting(denied);
    follow("web");
    await clock.advance(0);
    server.answer = unreachable;
    for (let minute = 1; minute < 20; minute++) {
      await clock.advance(60_000);
      expect(probe.state("team").kind).toBe("unknown");
    }
  });

  test("is checked once a minute in one namespace while it is missing, and in all others when that has changed", async () => {
    const { clock, checks, server, probe, follow } = setting(undefined);
    const namespaces = ["a", "b", "c", "d"];
    for (const namespace of namespaces) follow(`${namespace}/web`, namespace);
    await clock.advance(0);
    checks.length = 0;
    await clock.advance(180_000);
    expect(checks).toEqual(["a", "b", "c"]);
    server.answer = denied;
    await clock.advance(60_000);
    expect(namespaces.map((namespace) => probe.state(namespace).kind)).toEqual(namespaces.map(() => "inForce"));
  });

  test("is not checked for what is not known to require it", async () => {
    const { clock, checks, probe } = setting(denied);
    probe.need("team");
    await clock.advance(600_000);
    expect([checks, clock.pending]).toEqual([[], 0]);
  });

  test("is not checked again too soon when a Stack requires it again", async () => {
    const { clock, checks, probe, follow } = setting(denied);
    follow("web");
    await clock.advance(1_000);
    probe.forget("web");
    follow("web");
    await clock.advance(58_000);
    expect(checks).toHaveLength(1);
    expect(probe.state("team").kind).toBe("inForce");
  });

  test("is unknown again if nobody required it for a while", async () => {
    const { clock, probe, follow } = setting(denied);
    follow("web");
    await clock.advance(0);
    probe.forget("web");
    await clock.advance(61_000);
    follow("web");
    expect(probe.state("team").kind).toBe("unknown");
  });

  test("is unknown again after that also where something was about to start", async () => {
    const { clock, server, probe, follow } = setting(denied);
    follow("web");
    await clock.advance(0);
    probe.need("team");
    probe.forget("web");
    server.answer = undefined;
    await clock.advance(61_000);
    follow("web");
    expect(probe.state("team").kind).toBe("unknown");
    probe.need("team");
    await clock.advance(0);
    expect(probe.state("team").kind).toBe("missing");
  });

  test("is not in force because of a check that was overtaken by a later one", async () => {
    const { clock, server, probe, follow } = setting(denied);
    follow("web");
    await clock.advance(0);
    const late = Promise.withResolvers<void>();
    server.delay = late.promise;
    // The check of a round.
    await clock.advance(6 * 60_000);
    server.delay = Promise.resolve();
    server.answer = undefined;
    await clock.advance(1);
    probe.need("team");
    await clock.advance(0);
    expect(probe.state("team").kind).toBe("missing");
    late.resolve();
    await clock.advance(0);
    expect(probe.state("team").kind).toBe("missing");
  });

  test("requeues the Stacks when the answer changes, and only then", async () => {
    const { clock, woken, server, follow } = setting(undefined);
    follow("web");
    follow("shop");
    await clock.advance(60_000);
    expect(woken).toEqual(["web", "shop"]);
    server.answer = denied;
    await clock.advance(120_000);
    expect(woken).toEqual(["web", "shop", "web", "shop"]);
  });

  test("stays in force in a namespace that is needed, while the API server does not respond", async () => {
    const { clock, server, probe, follow } = setting(denied);
    follow("web");
    await clock.advance(0);
    probe.need("team");
    server.answer = unreachable;
    await clock.advance(120_000);
    expect(probe.state("team").kind).toBe("inForce");
  });

  test("stays in force in a namespace that is needed, while it is being deleted", async () => {
    const { clock, server, probe, follow } = setting(denied);
    follow("web");
    await clock.advance(0);
    probe.need("team");
    server.answer = terminating;
    await clock.advance(120_000);
    expect(probe.state("team").kind).toBe("inForce");
  });

  test("is not checked after the end of the term", async () => {
    const { clock, checks, probe, follow } = setting(denied);
    follow("web");
    await clock.advance(0);
    probe.stop();
    await clock.advance(600_000);
    expect(checks).toHaveLength(1);
    expect(probe.state("team").kind).toBe("unknown");
  });
});
