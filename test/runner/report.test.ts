/** The summary of a run is computed from the reports of its processes. */
import { expect, test } from "bun:test";

import { addReports, brokenReport, parseReport, seedLines, skippedReport, slowest, summary } from "./report.ts";

const xml = `<?xml version="1.0"?>
<testsuites name="bun test" tests="4" assertions="3" failures="1" skipped="1" time="3.5">
  <testsuite name="a.test.ts" file="a.test.ts" tests="4" failures="1">
    <testcase name="adds &lt;two&gt; numbers" classname="a" time="0.25" file="a.test.ts" line="3" assertions="1" />
    <testcase name="waits" classname="a" time="2.5" file="a.test.ts" line="9" assertions="1" />
    <testcase name="fails" classname="a" time="0.5" file="a.test.ts" line="12" assertions="1">
      <failure type="AssertionError" message="expected 1&#10;received 2" />
    </testcase>
    <testcase name="is skipped on this cluster" classname="a" time="0" file="a.test.ts" line="20" assertions="0">
      <skipped />
    </testcase>
  </testsuite>
</testsuites>`;

test("counts passed, failed and skipped tests", () => {
  expect(summary(parseReport(xml))).toBe("2 passed, 1 failed, 1 skipped");
});

test("lists each failure with its location and message", () => {
  expect(parseReport(xml).failures).toEqual(["a.test.ts:12 fails\n  expected 1\n  received 2"]);
});

test("lists each skipped test and job with the reason", () => {
  const { skipped, skips } = addReports(
    parseReport(xml),
    skippedReport("test/e2e/x.test.ts", "it needs a second node"),
  );
  expect(skipped).toBe(2);
  expect(skips).toEqual(["a.test.ts:20 is skipped on this cluster", "test/e2e/x.test.ts: it needs a second node"]);
});

test("lists the slowest tests first", () => {
  expect(slowest(parseReport(xml), 2)).toEqual(["    2.5 s  a.test.ts:9 waits", "    0.5 s  a.test.ts:12 fails"]);
});

test("a process without a report is a failure", () => {
  const { passed, failed, failures } = addReports(parseReport(xml), brokenReport("test/e2e/x.test.ts"));
  expect({ passed, failed }).toEqual({ passed: 2, failed: 2 });
  expect(failures.at(-1)).toStartWith("test/e2e/x.test.ts: the process ended without a result");
});

test("an empty report counts nothing", () => {
  expect(summary(parseReport(""))).toBe("0 passed, 0 failed");
});

test("shows each seed once, with what it is for", () => {
  const output = `a.test.ts:
    queue: TEST_SEED=7
    pods, and Stacks: views: TEST_SEED=4
(pass) waits (TEST_SEED=3)
    slots: TEST_SEED=7
    queue: TEST_SEED=7
    repeat it: TEST_SEED=5 make test
`;
  expect(seedLines(output)).toEqual(["TEST_SEED=7: queue, slots", "TEST_SEED=4: pods, and Stacks: views"]);
  expect(seedLines("")).toEqual([]);
});
