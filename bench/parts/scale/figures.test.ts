import { expect, test } from "bun:test";

import { memoryPerObject, type Phase } from "./figures.ts";
import { addedSince, onlyWrites, parseRequests } from "./requests.ts";

const phase = (stacks: number, updates: number, anonymousMb: number): Phase => ({
  stacks,
  updates,
  caughtUpMs: 1,
  drainedMs: 1,
  startCpuMs: 1,
  usage: { residentMb: anonymousMb + 40, anonymousMb, peakMb: anonymousMb + 60, cpuMs: 1 },
});

test("the memory of one object is the difference between two phases, divided by their number", () => {
  const phases = [phase(0, 0, 20), phase(1000, 0, 24), phase(1000, 10_000, 40), phase(1000, 10_000, 29)];
  expect(memoryPerObject(phases)).toEqual({ stackKb: 4, updateKb: 0.5 });
  expect(memoryPerObject([phase(0, 0, 20)])).toBeUndefined();
});

test("requests are counted by verb and resource, and writes without those to Leases", () => {
  const line = (verb: string, resource: string, count: number): string =>
    `apiserver_request_total{code="200",resource="${resource}",verb="${verb}"} ${count}`;
  const before = parseRequests([line("PATCH", "stacks", 3), line("PUT", "leases", 9)].join("\n"));
  const after = parseRequests(
    [line("PATCH", "stacks", 5), line("LIST", "stacks", 7), line("PUT", "leases", 10)].join("\n"),
  );
  const added = addedSince(before, after);
  expect(added).toEqual({ "PATCH stacks": 2, "LIST stacks": 7, "PUT leases": 1 });
  expect(onlyWrites(added)).toEqual({ "PATCH stacks": 2 });
});
