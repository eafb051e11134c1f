import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, test } from "bun:test";

import { findProblems, missingPackages, type Machine } from "./prerequisites.ts";

const gibibyte = 1024 ** 3;

const suitable: Machine = {
  platform: "linux",
  userId: 0,
  go: "go version go1.26.8 linux/amd64",
  freeCacheBytes: 100 * gibibyte,
  freeStateBytes: 100 * gibibyte,
  missingPackages: [],
  canInstall: true,
  links: ["lo", "eth0"],
  routes: ["default via 192.0.2.1 dev eth0"],
  toolsBuilt: false,
  imagesBuilt: false,
  debianMirror: "http://mirror.example/debian",
  foreignFiles: [],
};

describe("a machine is suitable for a cluster", () => {
  test.each<[string, Partial<Machine>]>([
    ["with everything that is needed", {}],
    ["without packages that apt-get can install", { missingPackages: ["containerd"] }],
    ["with little disk space if everything is built", { freeCacheBytes: 2 * gibibyte, toolsBuilt: true }],
    ["without a Debian mirror if the images are built", { debianMirror: undefined, imagesBuilt: true }],
    ["with a newer Go", { go: "go version go1.30 linux/arm64" }],
  ])("%s", (_, difference) => {
    expect(findProblems({ ...suitable, ...difference })).toEqual([]);
  });
});

describe("a machine is rejected with one line", () => {
  test.each<[string, Partial<Machine>, string]>([
    ["that is not Linux", { platform: "darwin", userId: 501, go: undefined }, "this needs Linux"],
    ["whose user is not root", { userId: 1000 }, "this needs root"],
    ["without Go", { go: undefined }, "Go is missing"],
    ["with an old Go", { go: "go version go1.24.1 linux/amd64" }, "Go is too old (go version go1.24.1 linux/amd64)"],
    ["with a full cache disk", { freeCacheBytes: gibibyte }, "the disk of the cache folder has 1.0 GiB free, but 12.0"],
    ["with a full state disk", { freeStateBytes: gibibyte }, "the disk of the state folder has 1.0 GiB free, but 4.0"],
    ["without apt-get", { missingPackages: ["runc", "tini"], canInstall: false }, "programs are missing"],
    ["with another cluster", { links: ["lo", "pko0"] }, "the network link pko0 exists"],
    ["whose addresses are in use", { routes: ["10.244.3.0/24 dev flannel"] }, "the addresses 10.244.0.0/16"],
    [
      "without a Debian mirror",
      { debianMirror: undefined },
      "the apt configuration of this machine has no Debian mirror",
    ],
    ["with foreign files in the state folder", { foreignFiles: ["photos"] }, "the state folder"],
  ])("%s", (_, difference, line) => {
    const problems = findProblems({ ...suitable, ...difference });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toStartWith(line);
  });

  test("for each unmet requirement", () => {
    expect(findProblems({ ...suitable, userId: 1000, go: undefined })).toHaveLength(2);
  });
});

describe("for tests, what is missing is installed", () => {
  let path = "";
  beforeEach(() => void (path = mkdtempSync(join(tmpdir(), "prerequisites-"))));
  afterEach(() => rmSync(path, { recursive: true }));

  function addProgram(name: string, script = ""): void {
    writeFileSync(join(path, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(path, name), 0o755);
  }

  const ofTests = ["jq", "python3-pip", "python3-venv"];
  const missing = (): string[] => missingPackages(path).filter((name) => ofTests.includes(name));

  test("without any program", () => {
    expect(missing()).toEqual(ofTests);
  });

  test("with programs on PATH, of any origin", () => {
    for (const name of ["jq", "pip"]) addProgram(name);
    addProgram("python3", 'test "$*" = "-c import ensurepip"');
    expect(missing()).toEqual([]);
  });

  test("with Debian's python3, which lacks the modules of its other packages", () => {
    addProgram("python3", "exit 1");
    expect(missing()).toContain("python3-venv");
  });
});
