import { expect, test } from "bun:test";
import { triggerAnnotation, type Update, type UpdateStatus } from "@pko/api";
import type { Store } from "@pko/kube";

import { runsOf } from "./observe.ts";
import { aParent, aPreview, commits } from "./testing/views.ts";

const [commit] = commits;
const head = { number: 1, commit };
const complete = {
  type: "Complete",
  status: "True",
  reason: "R",
  message: "",
  lastTransitionTime: "2030-01-01T00:00:00Z",
} as const;

const updateWith = (status: UpdateStatus): Update => ({
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "Update",
  metadata: {
    name: "web-pr-1-a",
    annotations: { [triggerAnnotation]: JSON.stringify({ type: "preview", revision: commit }) },
  },
  spec: { type: "preview", workspaceName: "web-pr-1" },
  status,
});

const statuses: readonly (readonly [string, UpdateStatus, boolean])[] = [
  ["has not ended", {}, false],
  ["has ended, and the forge shows it", { conditions: [complete], report: { state: "success" } }, true],
  ["has ended, and the forge shows that it runs", { conditions: [complete], report: { state: "running" } }, false],
  ["has ended, and the report is due", { conditions: [complete], report: { due: true } }, false],
  ["has ended, and nothing about it is reported", { conditions: [complete] }, false],
];
test.each(statuses)("whether the run of a preview is reported, if it %s", (_, status, isReported) => {
  const part: Pick<Store<Update>, "byIndex"> = { byIndex: () => [updateWith(status)] };
  const parent = aParent();
  expect(runsOf(part, parent, [aPreview(parent, head)])).toEqual([{ ...head, isReported }]);
});
