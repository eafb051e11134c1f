/** `CONTEXT` and `CLUSTER_KUBECONFIG` of the Makefile select a cluster of the user's own, whose kubeconfig is only read. */
import { afterAll, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { repositoryRoot, toolPath } from "@pko/cluster";

const folder = mkdtempSync(join(tmpdir(), "pko-context-"));
const kubeconfig = join(folder, "config");
const text = JSON.stringify({
  apiVersion: "v1",
  kind: "Config",
  clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:1" } }],
  users: [{ name: "u", user: { token: "x" } }],
  contexts: ["mine", "current"].map((name) => ({ name, context: { cluster: "c", user: "u" } })),
  "current-context": "current",
});

writeFileSync(join(folder, "kubectl"), `#!/bin/sh\nexec "${toolPath("kube")}" kubectl "$@"\n`, { mode: 0o755 });
beforeEach(() => writeFileSync(kubeconfig, text));
afterAll(() => rmSync(folder, { recursive: true }));

/** What `make kubeconfig` prints, which is the path of the kubeconfig that every target uses. */
function make(args: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  const { CLUSTER_KUBECONFIG: _, ...rest } = process.env;
  const { stdout, stderr } = Bun.spawnSync(["make", "-s", "kubeconfig", ...args], {
    cwd: repositoryRoot,
    env: { ...rest, ...env, PATH: `${folder}:${rest["PATH"]}` },
  });
  return `${stdout.toString()}${stderr.toString()}`.trim();
}

const copy = join(repositoryRoot, ".build/context.yaml");

test.each([
  ["of KUBECONFIG", ["CONTEXT=mine"], { KUBECONFIG: kubeconfig }],
  ["of CLUSTER_KUBECONFIG", ["CONTEXT=mine", `CLUSTER_KUBECONFIG=${kubeconfig}`], {}],
  ["of a CLUSTER_KUBECONFIG that starts with ~", ["CONTEXT=mine", "CLUSTER_KUBECONFIG=~/config"], { HOME: folder }],
])("a context %s is copied, and the kubeconfig stays as it is", (_, args, env) => {
  expect(make(args, env)).toBe(copy);
  expect(readFileSync(copy, "utf8")).toContain("current-context: mine");
  expect(readFileSync(kubeconfig, "utf8")).toBe(text);
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
