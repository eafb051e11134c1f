import { describe, expect, test } from "bun:test";
import {
  pullRequestAnnotation,
  type Condition,
  type Stack,
  type StackStatus,
  type Update,
  type UpdateSpec,
  type UpdateStatus,
} from "@pko/api";

import { occurrencesOfStack, occurrencesOfUpdate } from "./derive.ts";

const at = "2030-01-01T00:00:00Z";
const condition = (type: string, status: Condition["status"], [reason = "", message = ""]: string[]): Condition => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: at,
  observedGeneration: 1,
});

const succeeded = [condition("Failed", "False", ["UpdateSucceeded"]), condition("Complete", "True", ["Updated"])];
const failed = (reason = "UpdateFailed") => [
  condition("Failed", "True", [reason, "the program\n\u202efailed"]),
  condition("Complete", "True", [reason]),
];

const update = (spec: UpdateSpec, status: UpdateStatus): Update => ({
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "Update",
  metadata: { name: "web-1", namespace: "prod", uid: "uid-1" },
  spec: { workspaceName: "web", type: "up", ...spec },
  status: { startTime: at, endTime: "2029-12-31T23:00:00Z", ...status },
});

describe("the end of an Update", () => {
  const { startTime: _, ...neverStarted } = update({}, { conditions: failed("Canceled") }).status ?? {};
  test.each([
    ["an up that succeeded", {}, succeeded, "UpdateSucceeded"],
    ["a refresh that succeeded", { type: "refresh" }, succeeded, "UpdateSucceeded"],
    ["an up that failed", {}, failed(), "UpdateFailed"],
    ["an up that was cancelled", {}, failed("Canceled"), "UpdateFailed"],
    ["a destroy that succeeded", { type: "destroy" }, succeeded, "Destroyed"],
    ["a destroy that failed", { type: "destroy" }, failed(), "UpdateFailed"],
    ["a preview that succeeded", { type: "preview" }, succeeded, "PreviewSucceeded"],
    ["a preview that failed", { type: "preview", savePlan: true }, failed(), "PreviewFailed"],
    ["a preview that a person cancelled", { type: "preview" }, failed("Canceled"), "PreviewFailed"],
    ["a preview of a destroy that failed", { type: "destroy", previewOnly: true }, failed(), "PreviewFailed"],
    ["a plan, which the request for approval reports", { type: "preview", savePlan: true }, succeeded, undefined],
    ["a drift check, which the Stack reports", { type: "refresh", previewOnly: true }, failed(), undefined],
    ["an operation that runs", {}, [condition("Complete", "False", ["Progressing"])], undefined],
    ["a name that is not one", { workspaceName: "$(reboot)" }, failed(), undefined],
    ["an unknown operation", { type: "*bold*" }, failed(), undefined],
  ] as const)("%s", (...row) => {
    const [, spec, conditions, kind] = row;
    expect(occurrencesOfUpdate(update(spec, { conditions: [...conditions] })).map((each) => each.kind)).toEqual(
      kind ? [kind] : [],
    );
  });

  test("a preview of a pull request that was pushed to or closed is not reported, and one that failed is", () => {
    const metadata = { name: "web", namespace: "prod", annotations: { [pullRequestAnnotation]: "7" } };
    const stack: Stack = {
      apiVersion: "pulumi.com/v1",
      kind: "Stack",
      metadata,
      spec: { stack: "dev", preview: true },
    };
    const ended = (reason: string, type = "preview"): Update => update({ type }, { conditions: failed(reason) });
    expect(occurrencesOfUpdate(ended("Canceled"), stack)).toEqual([]);
    expect(occurrencesOfUpdate(ended("Canceled", "up"), stack)).toHaveLength(1);
    expect(occurrencesOfUpdate(ended("UpdateFailed"), stack)).toHaveLength(1);
  });

  test("an Update that was withdrawn before it started is not reported", () => {
    expect(occurrencesOfUpdate({ ...update({}, {}), status: neverStarted })).toEqual([]);
  });

  test("has the time when the operator learned of it, one line of text, and a link only if it is one", () => {
    const link = "https://app.pulumi.com/acme/web/dev/updates/1";
    const [first] = occurrencesOfUpdate(update({}, { conditions: failed(), permalink: link }));
    expect(first).toMatchObject({ time: Date.parse(at), stack: "web", update: "web-1", operation: "up" });
    expect(first).toMatchObject({ message: "the program failed", permalink: link });
    for (const permalink of ["javascript:alert(1)", "https://user:password@example.com", "nonsense"]) {
      const [other] = occurrencesOfUpdate(update({}, { conditions: failed(), permalink }));
      expect(other).not.toHaveProperty("permalink");
    }
    const [success] = occurrencesOfUpdate(update({}, { conditions: succeeded, summary: "2 created" }));
    expect(success?.message).toBe("2 created");
  });

  test("never contains outputs or the output of the program", () => {
    const stdout = { text: "canary", truncated: false };
    const all = occurrencesOfUpdate(update({}, { conditions: failed(), message: "canary", stdout, outputs: "canary" }));
    expect(JSON.stringify(all)).not.toContain("canary");
  });
});

describe("the state of a Stack", () => {
  const stack = (status: StackStatus, uid = "uid-1"): Stack => ({
    apiVersion: "pulumi.com/v1",
    kind: "Stack",
    metadata: { name: "web", namespace: "prod", uid },
    spec: { stack: "dev" },
    status,
  });
  const pending = {
    state: "Pending",
    updateName: "web-plan",
    updateUid: "u",
    digest: "d",
    trigger: "t",
    summary: "1 to delete",
    expiresAt: at,
  } as const;
  const awaiting: StackStatus = {
    conditions: [condition("Reconciling", "True", ["AwaitingApproval"])],
    approval: pending,
    waiting: { for: "an approval", since: at },
  };
  test.each([
    ["up to date", { conditions: [condition("Ready", "True", ["ProcessingCompleted"])] }, []],
    [
      "stalled",
      { conditions: [condition("Stalled", "True", ["SpecInvalid", "spec.x: is wrong"])] },
      [["Stalled", "SpecInvalid: spec.x: is wrong"]],
    ],
    [
      "stalled by a failed Update, which is reported itself",
      { conditions: [condition("Stalled", "True", ["UpdateFailed"])] },
      [],
    ],
    ["awaiting approval", awaiting, [["AwaitingApproval", "1 to delete"]]],
    ["approved", { ...awaiting, approval: { ...pending, state: "Approved" } }, []],
    [
      "drifted",
      {
        conditions: [condition("Drifted", "True", ["DriftDetected", "long"])],
        drift: { checkedAt: at, summary: "1 differs", resources: [] },
      },
      [["Drifted", "1 differs"]],
    ],
    ["without drift", { conditions: [condition("Drifted", "False", ["NoDrift"])] }, []],
    [
      "unknown drift",
      { conditions: [condition("Drifted", "Unknown", ["DriftCheckFailed", "no access"])] },
      [["DriftCheckFailed", "no access"]],
    ],
  ] as const)("%s", (...row) => {
    const [, status, expected] = row;
    const found = occurrencesOfStack(stack(status as StackStatus)).map(({ kind, message }) => [kind, message]);
    expect(found).toEqual(expected as unknown as string[][]);
  });

  test("has the same identity while it lasts, and another when it begins again or for another Stack", () => {
    const idOf = (message: string, since: string, uid?: string) => {
      const stalled = { ...condition("Stalled", "True", ["SpecInvalid", message]), lastTransitionTime: since };
      return occurrencesOfStack(stack({ conditions: [stalled] }, uid))[0]?.id;
    };
    expect(idOf("one", at)).toBe(idOf("two", at));
    expect(idOf("one", at)).not.toBe(idOf("one", "2030-01-01T00:00:01Z"));
    expect(idOf("one", at)).not.toBe(idOf("one", at, "uid-2"));
  });
});
