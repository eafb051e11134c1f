/** `CONTEXT` and `CLUSTER_KUBECONFIG` of the Makefile select a cluster of the user's own, whose kubeconfig is only read. */
import { afterAll, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { repositoryRoot, toolPath } from "@pko/cluster";

const folder = mkdtempSync(join(tmpdir(), "pko-context-"));
const kubeconfig = join(folder, "config");
const awkward = "arn:aws:eks:eu-west-1:1:cluster/b";
const configOf = (server: string): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server } }],
    users: [{ name: "u", user: { token: "x" } }],
    contexts: ["mine", "current", awkward].map((name) => ({ name, context: { cluster: "c", user: "u" } })),
    "current-context": "current",
  });
const text = configOf("https://127.0.0.1:1");

writeFileSync(join(folder, "kubectl"), `#!/bin/sh\nexec "${toolPath("kubectl")}" "$@"\n`, { mode: 0o755 });
beforeEach(() => writeFileSync(kubeconfig, text));
afterAll(() => {
  rmSync(folder, { recursive: true });
  for (const copy of copies) rmSync(copy, { force: true });
});

/** What `make kubeconfig` prints, which is the path of the kubeconfig that every target uses. */
function make(args: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  const { CLUSTER_KUBECONFIG: _, KUBECONFIG: __, ...rest } = process.env;
  const { stdout, stderr } = Bun.spawnSync(["make", "-s", "kubeconfig", ...args], {
    cwd: repositoryRoot,
    env: { ...rest, ...env, PATH: `${folder}:${rest["PATH"]}` },
  });
  return `${stdout.toString()}${stderr.toString()}`.trim();
}

const copies = new Set<string>();

/** The copy that make prints, with its text. */
function copyOf(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const path = make(args, env);
  if (path.startsWith(join(repositoryRoot, ".build/contexts/"))) copies.add(path);
  return { path, text: existsSync(path) ? readFileSync(path, "utf8") : "" };
}

test.each([
  ["of KUBECONFIG", ["CONTEXT=mine"], { KUBECONFIG: kubeconfig }],
  ["of CLUSTER_KUBECONFIG", ["CONTEXT=mine", `CLUSTER_KUBECONFIG=${kubeconfig}`], {}],
  ["of a CLUSTER_KUBECONFIG that starts with ~", ["CONTEXT=mine", "CLUSTER_KUBECONFIG=~/config"], { HOME: folder }],
])("a context %s is copied, and the kubeconfig stays as it is", (_, args, env) => {
  const copy = copyOf(args, env);
  expect(copy.path).toMatch(new RegExp(`^${repositoryRoot}/\\.build/contexts/mine-\\d+\\.yaml$`));
  expect(copy.text).toContain("current-context: mine");
  expect(readFileSync(kubeconfig, "utf8")).toBe(text);
});

test("each context has a copy of its own, which another one does not change", () => {
  const env = { KUBECONFIG: kubeconfig };
  const mine = copyOf(["CONTEXT=mine"], env);
  const other = copyOf([`CONTEXT=${awkward}`], env);
  expect(other.path).toMatch(/\/contexts\/arn_aws_eks_eu-west-1_1_cluster_b-\d+\.yaml$/);
  expect(other.text).toContain(`current-context: ${awkward}`);
  expect(readFileSync(mine.path, "utf8")).toBe(mine.text);
  expect(copyOf(["CONTEXT=mine"], env)).toEqual(mine);
});

test("contexts with the same name in different kubeconfigs have different copies", () => {
  const second = join(folder, "second");
  writeFileSync(second, configOf("https://127.0.0.1:2"));
  const found = [
    copyOf(["CONTEXT=mine"], { KUBECONFIG: kubeconfig }),
    copyOf(["CONTEXT=mine"], { KUBECONFIG: second }),
    copyOf(["CONTEXT=mine", `CLUSTER_KUBECONFIG=${second}`], { KUBECONFIG: kubeconfig }),
  ];
  expect(found.map((copy) => /server: (.*)/.exec(copy.text)?.[1])).toEqual([
    "https://127.0.0.1:1",
    "https://127.0.0.1:2",
    "https://127.0.0.1:2",
  ]);
  for (const { path, text } of found) expect(readFileSync(path, "utf8")).toBe(text);
});

test("another context can be selected in a shell whose KUBECONFIG is a copy, or that of the local cluster", () => {
  const home = join(folder, "home");
  mkdirSync(join(home, ".kube"), { recursive: true });
  writeFileSync(join(home, ".kube/config"), text);
  const mine = copyOf(["CONTEXT=mine"], { HOME: home });
  for (const KUBECONFIG of [mine.path, join(repositoryRoot, ".cluster/any/kubeconfig")]) {
    expect(copyOf(["CONTEXT=current"], { HOME: home, KUBECONFIG }).text).toContain("current-context: current");
    expect(copyOf(["CONTEXT=mine"], { HOME: home, KUBECONFIG })).toEqual(mine);
    expect(make(["CONTEXT=other"], { HOME: home, KUBECONFIG })).toContain(
      "choose one that KUBECONFIG= kubectl config get-contexts lists",
    );
  }
});

test("a context that does not exist is reported, with the command that lists them", () => {
  expect(make(["CONTEXT=other"], { KUBECONFIG: kubeconfig })).toStartWith(
    "error: your kubeconfig has no context other: choose one that kubectl config get-contexts lists",
  );
  expect(make(["CONTEXT=other", `CLUSTER_KUBECONFIG=${kubeconfig}`])).toStartWith(
    `error: ${kubeconfig} has no context other: choose one that kubectl config --kubeconfig=${kubeconfig} get-contexts lists`,
  );
});

test("a kubeconfig that does not exist is reported", () => {
  expect(make(["CONTEXT=mine", `CLUSTER_KUBECONFIG=${folder}/none`])).toStartWith(
    `error: there is no file ${folder}/none: set CLUSTER_KUBECONFIG`,
  );
});

test("a relative path, and one that starts with ~, become absolute", () => {
  expect(make(["CLUSTER_KUBECONFIG=config"])).toBe(join(repositoryRoot, "config"));
  expect(make(["CLUSTER_KUBECONFIG=~/config"], { HOME: folder })).toBe(kubeconfig);
});
