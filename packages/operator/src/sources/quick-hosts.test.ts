import { expect, test } from "bun:test";

import { manualClock } from "@pko/kube";

import { QuickHosts } from "./quick-hosts.ts";

test("a namespace with very many hosts loses the oldest of its own, and none of another namespace", () => {
  const hosts = new QuickHosts(manualClock());
  hosts.add("git.example.com", ["quiet", "noisy"]);
  for (let index = 0; index < 1000; index++) hosts.add(`host-${index}`, ["noisy"]);
  expect(hosts.has("git.example.com", "noisy")).toBe(false);
  expect(hosts.has("host-0", "noisy")).toBe(true);
  expect(hosts.has("git.example.com", "quiet")).toBe(true);
});

test("a namespace without a quick response for two hours is forgotten, and takes no memory", async () => {
  const clock = manualClock();
  const hosts = new QuickHosts(clock);
  const hourMs = 3_600_000;
  hosts.add("git.example.com", ["deleted", "kept"]);
  await clock.advance(1.5 * hourMs);
  hosts.add("git.example.com", ["kept"]);
  expect(hosts.has("git.example.com", "deleted")).toBe(true);
  await clock.advance(hourMs);
  hosts.add("git.example.com", ["new"]);
  const namespaces = ["deleted", "kept", "new"];
  expect(namespaces.map((each) => hosts.has("git.example.com", each))).toEqual([false, true, true]);
});

test("a host stays quick if it has listed another repository since a slow poll began", async () => {
  const clock = manualClock();
  const hosts = new QuickHosts(clock);
  const startedAt = clock.monotonic();
  await clock.advance(1000);
  hosts.add("git.example.com", ["a"]);
  hosts.recordSlow("git.example.com", ["a", "b"], startedAt);
  expect(hosts.has("git.example.com", "a")).toBe(true);
  hosts.recordSlow("git.example.com", ["a"], clock.monotonic() + 1);
  expect(hosts.has("git.example.com", "a")).toBe(false);
});
