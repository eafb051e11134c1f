import { describe, expect, test } from "bun:test";

import { pendingOperationsMessage } from "./pending-operations.ts";

const urn = (name: string): string => `urn:pulumi:dev::web::aws:s3/bucket:Bucket::${name}`;

describe("the message about pending operations", () => {
  test("explains how to clear creates", () => {
    expect(pendingOperationsMessage([{ operation: "creating", urn: urn("a") }])).toBe(
      `the state has pending operations, because an update was interrupted: creating ${urn("a")}. ` +
        "Pulumi does not know whether they succeeded. " +
        "Check whether the resources that were being created exist: the next update creates them again. " +
        "Delete or import those that exist, and then run an Update of type refresh with clearPendingCreates: true",
    );
  });

  test("recommends a refresh for other operations", () => {
    const message = pendingOperationsMessage([{ operation: "updating", urn: urn("a") }]);
    expect(message).toEndWith(
      "The next update with refresh: true reads the resources and removes the pending operations from the state",
    );
  });

  test("is short, however many there are", () => {
    const many = Array.from({ length: 100 }, (_, index) => ({
      operation: "deleting",
      urn: urn(`${index}${"x".repeat(4000)}`),
    }));
    const message = pendingOperationsMessage(many);
    expect(message).toContain("; and 95 more. ");
    expect(message.length).toBeLessThan(2_500);
  });
});
