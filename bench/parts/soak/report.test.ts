import { expect, test } from "bun:test";

import { gates } from "./gates.ts";
import { compareRest, isPassed, markdown, type SoakReport } from "./report.ts";

const gate = gates[0] ?? expect.unreachable();
const finding = { gate, median: 80, growth: 1.25, limit: 12, isPassed: true };
const rest = { files: 30, sockets: 20, threads: 8 };
const report: SoakReport = {
  minutes: 30,
  warmUpMinutes: 6,
  machine: "2 cores",
  counts: { changes: 1000, commits: 100, lifecycles: 200, agentRestarts: 90, connectionCuts: 60 },
  requests: 50_000,
  injectedFaults: 500,
  watches: 600,
  findings: [finding],
  rest: compareRest(rest, rest),
  failures: [],
};

test("a report shows the verdict, the load and what was measured", () => {
  expect(isPassed(report)).toBe(true);
  const text = markdown(report);
  expect(text).toStartWith("30 minutes on 2 cores, measured after a warm-up of 6: passed.\n");
  expect(text).toContain("| restarts of an agent in the middle of its work | 90 |\n");
  expect(text).toContain("| operator, resident memory | 80.0 MB | 1.3 MB | 12.0 MB |  |\n");
  expect(text).toContain("| operator, sockets | 20 | 20 |  |\n");
});

const failing: Record<string, [Partial<SoakReport>, string]> = {
  "a series grew too much": [
    { findings: [{ ...finding, growth: 40, isPassed: false }] },
    "| 40.0 MB | 12.0 MB | **too much** |",
  ],
  "handles stayed open": [
    { rest: compareRest(rest, { ...rest, sockets: 30 }) },
    "| operator, sockets | 20 | 30 | **too much** |",
  ],
  "the operator was not at rest in the end": [{ rest: compareRest(rest, {}) }, "| 30 | Infinity | **too much** |"],
  "something was not deployed": [{ failures: ["timed out"] }, "\n- timed out\n"],
};
for (const [name, [parts, line]] of Object.entries(failing)) {
  test(`a report fails if ${name}`, () => {
    expect(isPassed({ ...report, ...parts })).toBe(false);
    expect(markdown({ ...report, ...parts })).toContain("**failed**");
    expect(markdown({ ...report, ...parts })).toContain(line);
  });
}
