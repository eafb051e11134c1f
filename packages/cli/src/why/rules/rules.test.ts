/** What the integration test of `why` does not show: the order of the rules, and facts that are hidden. */
import { describe, expect, test } from "bun:test";

import { leaseName } from "@pko/api";
import type { ApiObject } from "@pko/kube";
import type { Lease } from "kubernetes-types/coordination/v1";

import { ago, aStack, notReady, now, ready } from "../../testing/objects.ts";
import { failuresIn } from "../../runs/failures.ts";
import { orderEvents, subnetError } from "../../testing/runs.ts";
import { causeCodes } from "../cause.ts";
import { explainStack } from "../explain.ts";
import type { StackFacts } from "../facts.ts";
import { explainFacts } from "./index.ts";

const lease = (renewedAgo: number, annotations: Record<string, string> = {}): ApiObject<Lease> => ({
  apiVersion: "coordination.k8s.io/v1",
  kind: "Lease",
  metadata: { name: leaseName, namespace: "operators", annotations },
  spec: { holderIdentity: "a", leaseDurationSeconds: 15, renewTime: ago(renewedAgo) },
});

const facts = (change: Partial<StackFacts>): StackFacts => ({
  now,
  namespace: "shop",
  name: "web",
  updates: [],
  dependencies: new Map(),
  isNamespaceTerminating: false,
  operator: { kind: "present", lease: lease(1) },
  hidden: [],
  ...change,
});

const codeOf = (change: Partial<StackFacts>): string => explainFacts(facts(change)).cause.code;
const broken = aStack("web", { conditions: notReady("Stalled", "SpecInvalid", "spec.branch: is invalid") });

describe("the order of the rules", () => {
  test.each<[string, Partial<StackFacts>, string]>([
    [
      "an operator that does not run explains everything else",
      { stack: broken, operator: { kind: "present", lease: lease(600) } },
      "operatorDown",
    ],
    [
      "an old Lease explains nothing if the Stack has changed since: another operator processes it",
      { stack: broken, operator: { kind: "present", lease: lease(9000) } },
      "specInvalid",
    ],
    [
      "a Lease that the user may not read explains nothing",
      { stack: broken, operator: { kind: "unknown" } },
      "specInvalid",
    ],
    ["no Lease at all", { stack: aStack("web"), operator: { kind: "absent" } }, "operatorAbsent"],
    ["a namespace that is being deleted", { stack: broken, isNamespaceTerminating: true }, "namespaceTerminating"],
    [
      "an old status explains nothing",
      { stack: { ...broken, metadata: { ...broken.metadata, generation: 2 } } },
      "notObserved",
    ],
    [
      "a suspension of false is none",
      { stack: broken, operator: { kind: "present", lease: lease(1, { "pulumi.com/suspend": "false" }) } },
      "specInvalid",
    ],
    [
      "a reason of a later version",
      { stack: aStack("web", { conditions: notReady("Stalled", "Novel", "new") }) },
      "unknown",
    ],
    [
      "an exhausted quota counts more than the pod",
      {
        stack: aStack("web", {
          conditions: notReady("Stalled", "WorkspaceFailed", "admission rejected the pod: exceeded quota: q"),
        }),
      },
      "quotaExceeded",
    ],
  ])("%s", (_, change, code) => expect(codeOf(change)).toBe(code));
});

describe("other Stacks", () => {
  const waiting = (name: string, ...others: readonly string[]): StackFacts =>
    facts({
      name,
      stack: aStack(name, { conditions: notReady("Reconciling", "PrerequisiteNotSatisfied", "waits.") }),
      dependencies: new Map(others.map((other) => [other, undefined])),
    });
  const explained = async (...all: readonly StackFacts[]) =>
    await explainStack("web", async (name) => all.find((each) => each.name === name) ?? facts({ name }));

  test("Stacks that wait for each other end the search", async () => {
    const { path, cause } = await explained(waiting("web", "db"), waiting("db", "web"));
    expect({ path, code: cause.code }).toEqual({ path: ["web", "db"], code: "prerequisite" });
  });

  test("one that needs help is the cause, rather than one that is being prepared", async () => {
    const working = facts({
      name: "db",
      stack: aStack("db", { conditions: notReady("Reconciling", "StackProcessing", "") }),
    });
    const broken = facts({
      name: "net",
      stack: aStack("net", { conditions: notReady("Stalled", "SpecInvalid", "no") }),
    });
    const both = await explained(waiting("web", "db", "net"), working, broken);
    expect({ path: both.path, code: both.cause.code }).toEqual({ path: ["web", "net"], code: "specInvalid" });
    const one = await explained(waiting("web", "db"), working);
    expect({ path: one.path, code: one.cause.code }).toEqual({ path: ["web", "db"], code: "workspacePreparing" });
  });

  test("those that are up to date are not the cause", async () => {
    const fine = facts({ name: "db", stack: aStack("db", { conditions: ready("") }) });
    const { path, cause } = await explained(waiting("web", "db"), fine);
    expect({ path, code: cause.code }).toEqual({ path: ["web"], code: "prerequisite" });
  });
});

test("every code is documented", async () => {
  const page = await Bun.file(new URL("../../../../../docs/cli.md", import.meta.url)).text();
  expect(causeCodes.filter((code) => !page.includes(`\`${code}\``))).toEqual([]);
});

test("the record of a failed update names the resources that failed", () => {
  const lastUpdate = { name: "web-1", type: "up", state: "failed", failure: "programError", message: "1 error" };
  const stack = aStack("web", { conditions: notReady("Stalled", "UpdateFailed", "failed"), lastUpdate });
  const failures = failuresIn(orderEvents);
  expect(failures).toEqual([`create aws:ec2/subnet:Subnet a: ${subnetError}`]);
  const { cause } = explainFacts(facts({ stack, failures }));
  expect(cause.message).toBe(`1 error\n\nResources that failed:\n${failures.join("")}`);
});
