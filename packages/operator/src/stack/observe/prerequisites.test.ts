import { describe, expect, test } from "bun:test";

import { failed, stackOf, succeeded, type Setting } from "../testing/views.ts";
import { prerequisiteView } from "./prerequisites.ts";

describe("a prerequisite", () => {
  const table: readonly (readonly [string, Setting, ReturnType<typeof prerequisiteView>["last"], boolean])[] = [
    ["that never ran", {}, "none", false],
    ["that is deployed", { last: succeeded() }, "deployed", true],
    ["that failed", { last: failed() }, "failed", true],
    ["that was previewed", { last: succeeded({ type: "preview" }) }, "previewed", true],
    ["that was destroyed", { last: succeeded({ type: "destroy" }) }, "none", true],
    ["whose spec has changed", { generation: 2, last: succeeded() }, "deployed", false],
    ["with a reconcile request", { request: "now", last: succeeded() }, "deployed", false],
    [
      "that has run for its reconcile request",
      { request: "now", last: succeeded({ reconcileRequest: "now" }) },
      "deployed",
      true,
    ],
    ["whose reconcile request was removed", { last: succeeded({ reconcileRequest: "now" }) }, "deployed", true],
  ];
  for (const [what, setting, last, isCurrent] of table) {
    test(what, () => expect(prerequisiteView("web", stackOf(setting))).toMatchObject({ last, isCurrent }));
  }
});
