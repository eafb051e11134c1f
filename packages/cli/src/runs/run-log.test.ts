import { describe, expect, test } from "bun:test";

import { finished, numbered, orderEvents, started, urns } from "../testing/runs.ts";
import { RunLog } from "./run-log.ts";

const stateOf = (log: RunLog) =>
  Object.fromEntries(log.resources.map(({ name, op, state }) => [name, `${op} ${state}`]));

describe("the log of a run", () => {
  test("each resource has its latest operation and state", () => {
    expect(stateOf(RunLog.of(orderEvents))).toEqual({
      "orders-dev": "update running",
      main: "replace done",
      a: "create failed",
      app: "update done",
      logs: "same done",
    });
  });

  test("the steps of a replacement are one operation, whose times are added", () => {
    const log = RunLog.of(orderEvents);
    expect(log.resources.find(({ urn }) => urn === urns.db)).toMatchObject({
      op: "replace",
      durationMs: 61_300,
      replaceKeys: ["engineVersion"],
    });
  });

  test("a replacement runs until its last step has finished", () => {
    const log = RunLog.of(numbered([finished(urns.db, "create-replacement"), started(urns.db, "delete-replaced")]));
    expect(log.resources.map(({ state }) => state)).toEqual(["running"]);
  });

  test("the operation after a refresh counts", () => {
    const log = RunLog.of(numbered([finished(urns.vpc, "refresh"), finished(urns.vpc, "same", { durationMs: 5 })]));
    expect(log.resources).toMatchObject([{ op: "same", durationMs: 5 }]);
  });

  test("diagnostics and policies, without debug messages", () => {
    const log = RunLog.of([
      ...orderEvents,
      ...numbered([{ kind: "diagnostic", severity: "debug", message: "noise" }], 100),
    ]);
    expect(log.diagnostics.map(({ severity, message }) => `${severity} ${message.slice(0, 20)}`)).toEqual([
      "error creating EC2 Subnet:",
      "warning policy aws-tags (adv",
    ]);
  });

  test("an event counts once, and missing ones are gaps that the record fills", () => {
    const log = RunLog.of(orderEvents.filter(({ seq }) => seq < 3 || seq > 5));
    expect(log.gaps).toEqual([{ from: 3, to: 5 }]);
    expect(orderEvents.slice(0, 2).map((event) => log.add(event))).toEqual([false, false]);
    for (const event of orderEvents) log.add(event);
    expect(log.gaps).toEqual([]);
  });
});
