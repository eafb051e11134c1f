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
  const server = { answer: first };
  const create: Client["create"] = async (_, object, options) => {
    expect(options?.dryRun).toBe(true);
    checks.push(object.metadata.namespace ?? "");
    if (server.answer) throw server.answer;
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

  test("is checked once a minute in each namespace, however many Stacks require it", async () => {
    const { clock, checks, follow } = setting(denied);
    follow("web");
    follow("shop");
    await clock.advance(0);
    follow("web");
    follow("shop");
    follow("api", "other");
    await clock.advance(120_000);
    expect(checks.toSorted()).toEqual(["other", "other", "other", "team", "team", "team"]);
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

  test("stays in force while the API server does not respond", async () => {
    const { clock, server, probe, follow } = setting(denied);
    follow("web");
    await clock.advance(0);
    server.answer = unreachable;
    await clock.advance(60_000);
    expect(probe.state("team").kind).toBe("inForce");
  });

  test("stays in force while its namespace is being deleted", async () => {
    const { clock, server, probe, follow } = setting(denied);
    follow("web");
    await clock.advance(0);
    server.answer = terminating;
    await clock.advance(60_000);
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
