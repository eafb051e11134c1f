/** Checks the machine before anything is changed: each unmet requirement is one line with what to do. */
import { existsSync, readdirSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { basename, dirname } from "node:path";

import { debianMirror } from "./debian-mirror.ts";
import { layout } from "./layout.ts";
import { cacheRoot, stateRoot } from "./paths.ts";
import { network } from "./network.ts";
import { attempt, isOnPath, run } from "./shell.ts";
import { step } from "./progress.ts";

/** Program, path or `python3 -m module` → the Debian package that contains it. */
type Packages = Readonly<Record<string, string>>;

const clusterPackages: Packages = {
  containerd: "containerd",
  runc: "runc",
  "/usr/lib/cni/bridge": "containernetworking-plugins",
  buildah: "buildah",
  debootstrap: "debootstrap",
  iptables: "iptables",
  ip: "iproute2",
  sysctl: "procps",
  tini: "tini",
  slirp4netns: "slirp4netns",
  unshare: "util-linux",
  git: "git",
};

/** Programs that only tests use. */
const testPackages: Packages = {
  ssh: "openssh-client",
  openssl: "openssl",
  // This executable is also the server. The package redis-server would start a service.
  "redis-check-rdb": "redis-tools",
  // For the tests of the console.
  "chromium-headless-shell": "chromium-headless-shell",
  // For the test of the release workflow.
  jq: "jq",
  // For programs in Python. `python3 -m venv` needs the module ensurepip, which Debian's python3 lacks.
  pip: "python3-pip",
  "python3 -m ensurepip": "python3-venv",
  // For the test of the completion scripts.
  zsh: "zsh",
  fish: "fish",
};

const gibibyte = 1024 ** 3;
const wantedCacheBytes = 12 * gibibyte;
const wantedStateBytes = 4 * gibibyte;

export interface Machine {
  readonly platform: string;
  readonly userId: number;
  /** The output of `go version`, or undefined without Go. */
  readonly go: string | undefined;
  readonly freeCacheBytes: number;
  readonly freeStateBytes: number;
  readonly missingPackages: readonly string[];
  readonly canInstall: boolean;
  /** The machine's network links, and its routes as `ip route` prints them. */
  readonly links: readonly string[];
  readonly routes: readonly string[];
  readonly toolsBuilt: boolean;
  readonly imagesBuilt: boolean;
  readonly debianMirror: string | undefined;
  /** Files in the state folder that are not part of a cluster's state. */
  readonly foreignFiles: readonly string[];
}

/** What is already built. */
export interface Built {
  readonly tools: boolean;
  readonly images: boolean;
}

/** Everything that prevents a cluster on this machine. */
export function findProblems(machine: Machine): string[] {
  if (machine.platform !== "linux") {
    return [`this needs Linux, but this machine runs ${machine.platform}: use a Linux machine or virtual machine`];
  }
  return [
    machine.userId !== 0 && "this needs root for namespaces and containers: run it with sudo",
    goProblem(machine.go),
    spaceProblem("cache", machine.freeCacheBytes, machine.toolsBuilt ? gibibyte : wantedCacheBytes),
    spaceProblem("state", machine.freeStateBytes, wantedStateBytes),
    packagesProblem(machine),
    addressProblem(machine),
    mirrorProblem(machine),
    foreignFilesProblem(machine),
  ].filter((problem) => problem !== false);
}

function goProblem(version: string | undefined): string | false {
  if (version === undefined) return "Go is missing, which builds the cluster: install Go 1.26 or newer (go.dev/dl)";
  const [, major, minor] = /go(\d+)\.(\d+)/.exec(version) ?? [];
  const tooOld = Number(major) < 1 || (Number(major) === 1 && Number(minor) < 26);
  return tooOld && `Go is too old (${version.trim()}): install Go 1.26 or newer (go.dev/dl)`;
}

function spaceProblem(folder: "cache" | "state", free: number, wanted: number): string | false {
  if (free >= wanted) return false;
  const variable = folder === "cache" ? "PKO_CACHE" : "CLUSTER_STATE";
  const gib = (bytes: number): string => (bytes / gibibyte).toFixed(1);
  return `the disk of the ${folder} folder has ${gib(free)} GiB free, but ${gib(wanted)} GiB are needed: free some space, or set ${variable} to a folder on another disk`;
}

function packagesProblem(machine: Machine): string | false {
  if (machine.missingPackages.length === 0 || machine.canInstall) return false;
  return `programs are missing and there is no apt-get: install ${machine.missingPackages.join(", ")}`;
}

function addressProblem(machine: Machine): string | false {
  if (machine.links.includes(network.link)) {
    return `the network link ${network.link} exists: another local cluster is running; stop it with 'make cluster-down' in its clone`;
  }
  const prefixes = [network.pods, network.services].map((range) => range.split(".").slice(0, 2).join("."));
  const taken = machine.routes.find((route) => prefixes.some((prefix) => route.startsWith(`${prefix}.`)));
  return (
    taken !== undefined &&
    `the addresses ${network.pods} and ${network.services} are in use on this machine (route '${taken.trim()}'): stop what uses them`
  );
}

function mirrorProblem({ imagesBuilt, debianMirror: mirror }: Machine): string | false {
  if (imagesBuilt || mirror !== undefined) return false;
  return "the apt configuration of this machine has no Debian mirror: set DEBIAN_MIRROR to the URL of one";
}

/** A start deletes everything in the folder. */
function foreignFilesProblem({ foreignFiles: [first] }: Machine): string | false {
  if (first === undefined) return false;
  return `the state folder ${stateRoot} contains ${first}, which is not part of a cluster: set CLUSTER_STATE to an empty folder`;
}

function foreignFilesIn(root: string): string[] {
  const own = new Set(Object.values<string>({ ...layout(root) }).map((path) => basename(path)));
  return existsSync(root) ? readdirSync(root).filter((name) => !own.has(name.replace(/\.new$/, ""))) : [];
}

export async function inspectMachine(built: Built): Promise<Machine> {
  const go = isOnPath("go") ? await run(["go", "version"]) : undefined;
  const linux = process.platform === "linux";
  return {
    platform: process.platform,
    userId: process.getuid?.() ?? -1,
    go,
    freeCacheBytes: await freeBytes(cacheRoot),
    freeStateBytes: await freeBytes(stateRoot),
    missingPackages: missing(clusterPackages, searchPath()),
    canInstall: isOnPath("apt-get"),
    links: linux ? readdirSync("/sys/class/net") : [],
    routes: isOnPath("ip") ? (await attempt(["ip", "-4", "route"])).stdout.split("\n") : [],
    toolsBuilt: built.tools,
    imagesBuilt: built.images,
    debianMirror: debianMirror(),
    foreignFiles: foreignFilesIn(stateRoot),
  };
}

export async function installPackages(names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  await step(`installing ${names.join(", ")}`, async () => {
    const env = { DEBIAN_FRONTEND: "noninteractive" };
    await run(["apt-get", "update", "-qq"], { env });
    await run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", ...names], { env });
  });
}

/** Including what only tests need. */
export function missingPackages(path = searchPath()): string[] {
  return missing({ ...clusterPackages, ...testPackages }, path);
}

function missing(packages: Packages, path: string): string[] {
  return Object.entries(packages)
    .filter(([what]) => !isPresent(what, path))
    .map(([, name]) => name);
}

const searchPath = (): string => process.env["PATH"] ?? "";

function isPresent(what: string, path: string): boolean {
  if (what.startsWith("/")) return existsSync(what);
  const [name = "", , module] = what.split(" ");
  const program = Bun.which(name, { PATH: path });
  if (program === null || module === undefined) return program !== null;
  return Bun.spawnSync([program, "-c", `import ${module}`], { stderr: "ignore" }).success;
}

async function freeBytes(folder: string): Promise<number> {
  let existing = folder;
  while (!existsSync(existing)) existing = dirname(existing);
  const { bavail, bsize } = await statfs(existing);
  return bavail * bsize;
}
