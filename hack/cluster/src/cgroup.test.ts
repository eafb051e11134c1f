import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { afterEach, beforeEach, expect, test } from "bun:test";

import { createCgroup, vacateRoot } from "./cgroup.ts";

let mount = "";
beforeEach(() => void (mount = mkdtempSync(join(tmpdir(), "cgroup-"))));
afterEach(() => rmSync(mount, { recursive: true }));

function writeFiles(files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(mount, name)), { recursive: true });
    writeFileSync(join(mount, name), text);
  }
}

const read = (name: string): string => readFileSync(join(mount, name), "utf8");
const controllers = { "cgroup.controllers": "cpu memory\n" };

test("in a container with its own cgroup namespace, its processes move out of the root", async () => {
  writeFiles({ ...controllers, "cgroup.type": "domain\n", "cgroup.procs": "1\n42\n" });
  await vacateRoot(mount);
  expect(read("init/cgroup.procs")).toBe("1\n42\n");
});

test.each([
  ["the root cgroup of a machine", { ...controllers, "cgroup.procs": "1\n42\n" }],
  ["the root of a container whose processes have moved", { ...controllers, "cgroup.type": "", "cgroup.procs": "" }],
  ["a mount of cgroups v1", { "cpu/cgroup.procs": "1\n42\n" }],
])("%s stays as it is", async (_, files) => {
  writeFiles(files);
  await vacateRoot(mount);
  expect(existsSync(join(mount, "init"))).toBe(false);
});

test("the controllers are enabled for pods, which have the same weight as the processes that have moved", async () => {
  writeFiles({ ...controllers, "init/cpu.weight": "100\n", "pko-cluster/cpu.weight": "100\n" });
  await createCgroup(mount);
  for (const group of [".", "pko-cluster", "pko-cluster/second"])
    expect(read(`${group}/cgroup.subtree_control`)).toBe("+cpu +memory");
  expect(read("pko-cluster/cpu.weight")).toBe("800");
  expect(read("init/cpu.weight")).toBe("800");
});

test("pods have the weight of eight processes with cgroups v1", async () => {
  writeFiles({ "cpu/pko-cluster/cpu.shares": "1024\n", "memory/cgroup.procs": "" });
  await createCgroup(mount);
  expect(read("cpu/pko-cluster/cpu.shares")).toBe("8192");
  expect(existsSync(join(mount, "memory/pko-cluster/second"))).toBe(true);
});
