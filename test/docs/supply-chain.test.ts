/** The repository matches what SECURITY.md describes about dependencies, images and releases. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { describe, expect, test } from "bun:test";
import { parse } from "yaml";

import { files, root } from "./pages.ts";

const read = (path: string): string => readFileSync(join(root, path), "utf8");

interface Package {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly allowScripts?: object;
}

interface Locked {
  readonly link?: boolean;
  readonly integrity?: string;
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
}

/** Third-party packages, by the directories that they are installed in. */
const locked = Object.entries(
  (JSON.parse(read("package-lock.json")) as { packages: Record<string, Locked> }).packages,
).filter(([path, { link }]) => path.includes("node_modules/") && !link);

test("the lockfile has a checksum for every third-party npm package", () => {
  expect(locked.length).toBeGreaterThan(50);
  expect(locked.filter(([, { integrity }]) => !integrity?.startsWith("sha512-")).map(([path]) => path)).toEqual([]);
});

describe("npm dependencies have exact versions", () => {
  const manifests = files.filter((path) => /^((packages|hack)\/[^/]+\/|test\/|bench\/)?package\.json$/.test(path));
  test.each(manifests)("%s", (path) => {
    const { dependencies, devDependencies } = JSON.parse(read(path)) as Package;
    const required = Object.entries({ ...dependencies, ...devDependencies });
    const isOurs = (name: string): boolean => name.startsWith("@pko/");
    expect(required.filter(([name, version]) => !isOurs(name) && !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  });
});

test("no compiled-in package has an install script, and npm runs only the install script of the runtime", () => {
  const scripted = locked.filter(([, { hasInstallScript }]) => hasInstallScript);
  expect(scripted.filter(([, { dev }]) => !dev).map(([path]) => path)).toEqual([]);
  const { allowScripts } = JSON.parse(read("package.json")) as Package;
  expect(allowScripts).toEqual({ bun: true });
});

test("every Go module of the local cluster has a go.sum", () => {
  const modules = files.filter((path) => /^hack\/cluster\/go\/.*go\.mod$/.test(path)).map((path) => dirname(path));
  expect(modules.length).toBeGreaterThan(3);
  // A module without dependencies needs none.
  const dependent = modules.filter((folder) => read(join(folder, "go.mod")).includes("require"));
  expect(dependent.filter((folder) => !files.includes(join(folder, "go.sum")))).toEqual([]);
});

/** Modules and their versions. */
const requirementsOf = (path: string): ReadonlyMap<string, string> =>
  new Map(
    Array.from(read(path).matchAll(/^(?:require)?\s+(\S+) (v\S+)/gm), ([, name = "", version = ""]) => [name, version]),
  );

describe("the packages that a Go program shares with the CLI have the same versions, so that Go compiles them once:", () => {
  const cli = requirementsOf("hack/cluster/go/pulumi/go.mod");
  const others = files.filter((path) => /^(?:examples\/.*|.*\/kubernetes-provider)\/go\.mod$/.test(path));

  test.each(others)("%s", (path) => {
    const shared = [...requirementsOf(path)].filter(([name]) => cli.has(name));
    expect(shared.length).toBeGreaterThan(50);
    expect(shared.filter(([name, version]) => cli.get(name) !== version)).toEqual([]);
  });

  test("the examples and the provider", () => {
    expect(others.length).toBeGreaterThan(3);
  });
});

describe("workflows", () => {
  const workflows = files.filter((path) => path.startsWith(".github/workflows/"));

  test.each(workflows)("%s pins every action to a commit, and is read-only by default", (path) => {
    const actions = [...read(path).matchAll(/uses: (\S+)/g)].map(([, action = ""]) => action);
    const isOurs = (action: string): boolean => action.startsWith("./") && files.includes(action.slice(2));
    expect(actions.length).toBeGreaterThan(1);
    expect(actions.filter((action) => !isOurs(action) && !/@[0-9a-f]{40}$/.test(action))).toEqual([]);
    expect(parse(read(path))).toMatchObject({ permissions: { contents: "read" } });
  });
});

test("the commands of the workflows are targets of the Makefile, or scripts", () => {
  const workflows = files.filter((path) => path.startsWith(".github/workflows/")).map(read);
  const commands = workflows.flatMap((text) => Array.from(text.matchAll(command), ([, found = ""]) => found));
  const words = commands.flatMap((found) => found.split(" ")).filter((word) => !/[="]/.test(word) && word !== "make");
  const targets = new Set(Array.from(read("Makefile").matchAll(/^([a-z-]+):/gm), ([, target = ""]) => target));
  expect(words).toContain("faults");
  expect(words.filter((word) => !targets.has(word) && !files.includes(word))).toEqual([]);
});

const command = /(?:command: |- |run: )((?:[A-Z_]+=[^ ]+ )*(?:make|\.ci)[^\n]*)/g;

test("the operator's image is built from scratch, and its user is not root", () => {
  const [, last = ""] = read("deploy/images/operator.Containerfile").split("\nFROM scratch\n");
  expect(last).not.toContain("FROM ");
  expect(last).toMatch(/^USER 65532:65532$/m);
});

test("every threat in SECURITY.md names tests, and all of them exist", () => {
  const [, table = ""] = read("SECURITY.md").split("\n## Threats\n");
  const rows = table.split("\n").filter((line) => line.startsWith("| "));
  const threats = rows.slice(2).map((row) => row.split("|").map((cell) => cell.trim()));
  expect(threats.length).toBeGreaterThan(15);
  const isVerified = (cell: string): boolean => {
    const tests = [...cell.matchAll(/`([^`]+)`/g)].map(([, path = ""]) => path);
    return tests.length > 0 && tests.every((path) => path.endsWith(".test.ts") && files.includes(path));
  };
  expect(threats.filter(([, , , tests = ""]) => !isVerified(tests)).map(([, threat]) => threat)).toEqual([]);
});
