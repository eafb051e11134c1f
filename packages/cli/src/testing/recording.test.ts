/** Pictures of terminals. Those of the README are recorded in test/e2e/cli. */
import { expect, test } from "bun:test";

import type { Block } from "../output/blocks.ts";
import { render } from "../output/render.ts";
import { withColor } from "../output/style.ts";
import { RunLog } from "../runs/run-log.ts";
import { frame } from "../watch/frame.ts";
import { resultReport } from "../watch/result.ts";
import { Screen } from "../watch/screen.ts";
import { expectGolden } from "./golden.ts";
import { ago, anUpdate, aStack, condition, now } from "./objects.ts";
import { recording, type Shot } from "./recording.ts";
import { finished, numbered, orderContent, started, urns } from "./runs.ts";
import { Terminal } from "./terminal.ts";

const size = { columns: 80, rows: 16 };

const shown = (blocks: readonly Block[]): string => render(blocks, { width: size.columns, color: true });
const prompt = (command: string): string => `$ kubectl pulumi ${command}\n`;

const events = numbered([
  { kind: "step", name: "up" },
  started(urns.stack, "same"),
  started(urns.vpc, "create"),
  started(urns.bucket, "create"),
  finished(urns.vpc, "create", { durationMs: 2100 }),
  started(urns.subnet, "create"),
  started(urns.app, "update"),
  finished(urns.bucket, "create", { durationMs: 3200 }),
  finished(urns.subnet, "create", { durationMs: 1700 }),
  finished(urns.app, "update", {
    durationMs: 4100,
    changes: [{ path: "spec.replicas", kind: "update", old: "1", new: "3" }],
  }),
  finished(urns.stack, "same", { durationMs: 9000 }),
]);

/** Through the same screen as in a terminal. */
function watchShots(): Shot[] {
  let output = prompt("watch orders");
  const screen = new Screen({ out: (text) => void (output += text) });
  const take = (seconds: number): Shot => {
    const shot = { output, seconds };
    output = "";
    return shot;
  };
  const update = anUpdate("orders-3f9c1e77ab20", { status: { startTime: ago(180) } });
  const common = { stackName: "orders", hidden: [], recovered: 0, expected: orderContent.resources.length };
  const shots = events.map((_, at) => {
    const canvas = { width: size.columns, height: size.rows, now: now - 180_000 + (at + 1) * 1000, paint: withColor };
    screen.draw(frame({ ...common, update, log: RunLog.of(events.slice(0, at + 1)) }, canvas));
    return take(0.7);
  });
  screen.close();
  const conditions = [condition("Complete", "True", ["Complete", ""])];
  const status = { startTime: ago(180), endTime: ago(168), summary: "3 created, 1 updated", conditions };
  const ended = anUpdate("orders-3f9c1e77ab20", { status });
  const outputs = { url: "https://orders.example.com", password: "[secret]" };
  const stack = aStack("orders", { lastUpdate: { name: "orders-3f9c1e77ab20" }, outputs });
  output += shown(resultReport({ ...common, update: ended, log: RunLog.of(events), stack }, { isLive: false }).blocks);
  return [...shots, take(6)];
}

test("a recording shows each frame, and at last the result", () => {
  const shots = watchShots();
  expectGolden("recording.svg", recording(shots, size));
  const terminal = new Terminal();
  for (const { output } of shots) terminal.write(output);
  // What was drawn while it ran is gone.
  expect(terminal.text).not.toContain("●");
  expect(terminal.text).toContain("The up orders-3f9c1e77ab20 of Stack orders succeeded after 12s");
});
