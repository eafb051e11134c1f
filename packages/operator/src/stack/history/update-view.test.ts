import { expect, test } from "bun:test";
import type { Update } from "@pko/api";

import { ago } from "../testing/views.ts";
import { updateView } from "./update-view.ts";

test("a conflict of the Go operator is recognized by its message", () => {
  const update = (message: string): Update => ({
    apiVersion: "auto.pulumi.com/v1alpha1",
    kind: "Update",
    metadata: { name: "u" },
    spec: { type: "up" },
    status: {
      message,
      conditions: [{ type: "Failed", status: "True", reason: "UpdateFailed", message: "", lastTransitionTime: ago(0) }],
    },
  });
  expect(updateView(update("error: [409] Conflict: Another update is currently in progress.")).failure).toBe(
    "conflict",
  );
  expect(updateView(update("error: something else")).failure).toBeUndefined();
});
