import { expect, test } from "bun:test";

import { quantity, requestsOf } from "./pod-requests.ts";

const container = (cpu: string, memory: string) => ({ name: "c", resources: { requests: { cpu, memory } } });

test("a pod requests the sum of its containers, or its largest init container", () => {
  const containers = [container("100m", "64Mi"), container("0.1", "32Mi")];
  expect(requestsOf({ containers })).toEqual({ cpuMillis: 200, memoryMb: 96 });
  expect(requestsOf({ containers, initContainers: [container("1", "1Mi")] })).toEqual({
    cpuMillis: 1000,
    memoryMb: 96,
  });
});

test("a container without requests counts as zero", () => {
  expect(requestsOf({ containers: [{ name: "c" }] })).toEqual({ cpuMillis: 0, memoryMb: 0 });
});

test("quantities are parsed with their units", () => {
  expect(["2", "250m", "1Gi", "1M", "nonsense"].map(quantity)).toEqual([2, 0.25, 2 ** 30, 1e6, 0]);
});
