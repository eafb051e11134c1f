/** The compiled operator: its flags, its log, its stack traces and its profiles. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { execFile, execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

import { caSecretName, leaseName, logLevelAnnotation, version } from "@pko/api";
import { builtin } from "@pko/kube";
import { stacks } from "@pko/operator";
import { freePort, spawnChild, startApiServer, waitFor, type ApiServer, type ChildProcess } from "@pko/testkit";

import { quickstart, testTimeoutMs } from "../api/install.ts";

const namespace = "pulumi-kubernetes-operator";
const repositoryRoot = join(import.meta.dir, "../../..");
// Like in a pod: nothing of this machine configures it.
const env = { PATH: process.env["PATH"] ?? "", TMPDIR: tmpdir() };

let folder: string;
let executable: string;
let server: ApiServer;
let operator: ChildProcess;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "pko-executable-"));
  executable = join(folder, "operator");
  execFileSync(process.execPath, [join(repositoryRoot, "packages/operator/build.ts"), executable]);
  server = await startApiServer();
  await server.kubectl(["apply", "--filename", quickstart]);
  // A new CRD has no conditions at first, which kubectl reports as an error.
  const wait = ["wait", "crd", "--all", "--for=condition=Established", "--timeout=30s"];
  await waitFor(() => server.kubectl(wait), { timeoutMs: 60_000, what: "the CRDs" });
  operator = spawnChild({ command: [executable, ...(await flags())], logFile: join(folder, "log"), env });
  await logged("the operator to lead", ({ msg }) => msg === "controller started");
}, testTimeoutMs);

afterAll(async () => {
  await operator.stop();
  await server.stop();
  await rm(folder, { recursive: true });
});

const flags = async (): Promise<string[]> => [
  `--kubeconfig=${server.kubeconfig}`,
  `--namespace=${namespace}`,
  "--agent-image=example.com/operator",
  "--leader-elect",
  "--retry-period=200ms",
  `--probe-address=127.0.0.1:${await freePort()}`,
  `--metrics-address=127.0.0.1:${await freePort()}`,
];

type Line = Readonly<Record<string, unknown>>;

/** The line that matches, or the last of `count` such lines. */
async function logged(what: string, matches: (line: Line) => boolean, count = 1): Promise<Line> {
  const find = async (): Promise<Line | undefined> => {
    const lines = (await Bun.file(join(folder, "log")).text()).split("\n").filter((line) => line !== "");
    return lines.map((line) => JSON.parse(line) as Line).filter(matches)[count - 1];
  };
  return await waitFor(find, { what, timeoutMs: 120_000 });
}

const maxBuffer = 2 ** 30;
const runExecutable = async (...args: string[]): Promise<string> =>
  (await promisify(execFile)(executable, args, { env, maxBuffer })).stdout;
const profile = async (...args: string[]): Promise<unknown> =>
  JSON.parse(await runExecutable("profile", ...args, `--pid=${operator.pid}`));

describe("the executable of the operator", () => {
  test("has no other file", () => expect(existsSync(`${executable}.map`)).toBe(false));

  test.each([[[]], [["profile"]], [["console"]]])("prints its version, also for the command %p", async (command) => {
    expect(await runExecutable(...command, "--version")).toBe(`${version}\n`);
  });

  test("prints its flags, and those of its commands", async () => {
    expect(await runExecutable("--help")).toContain("  --log-format VALUE\n      The log format: json or console.");
    expect(await runExecutable("console", "--help")).toContain("--hosts VALUE");
    expect(await runExecutable("profile", "--help")).toContain("--seconds VALUE");
  });
});

test("the log names the Secret of the CA", async () => {
  const line = await logged("the CA", ({ msg }) => msg === "CA stored in a new Secret");
  expect(line).toMatchObject({ logger: "operator.ca", namespace, secretName: caSecretName });
});

test(
  "an annotation of the Lease changes the log level, and each line of a pass names the Stack and the pass",
  async () => {
    const annotate = async (level: string | null): Promise<void> => {
      const body = { metadata: { annotations: { [logLevelAnnotation]: level } } };
      await server.client.patch(builtin.leases, { namespace, name: leaseName }, { patch: { type: "merge", body } });
    };
    await annotate("debug");
    await logged("the new level", ({ msg, to }) => msg === "the log level was changed" && to === "debug");
    const { apiVersion, kind } = stacks;
    const spec = { stack: "dev", projectRepo: "https://git.invalid/web", branch: "main" };
    await server.client.create(stacks, { apiVersion, kind, metadata: { namespace: "default", name: "web" }, spec });
    const line = await logged("a line of the level debug", ({ level, stack }) => level === "debug" && stack === "web");
    expect(line).toMatchObject({
      logger: "operator",
      controller: "stack-controller",
      namespace: "default",
      name: "web",
    });
    expect(line["reconcileID"]).toMatch(/^[0-9a-f]{10}$/);
    await annotate(null);
    await logged("the configured level", ({ msg, to }) => msg === "the log level was changed" && to === "info");
  },
  testTimeoutMs,
);

test(
  "a replica that has lost its Lease and leads again restores the Secret of its CA",
  async () => {
    const renewTime = new Date().toISOString().replace("Z", "000Z");
    const body = { spec: { holderIdentity: "another", leaseDurationSeconds: 1, renewTime } };
    await server.client.patch(builtin.leases, { namespace, name: leaseName }, { patch: { type: "merge", body } });
    await logged("the replica to lead again", ({ msg }) => msg === "leading", 2);
    await server.client.delete(builtin.secrets, { namespace, name: caSecretName });
    await logged("another CA", ({ msg }) => msg === "CA stored in a new Secret", 2);
    expect(await server.client.find(builtin.secrets, { namespace, name: caSecretName })).toBeDefined();
  },
  testTimeoutMs,
);

describe("a profile of the executable", () => {
  test(
    "is a heap snapshot with the names of our classes",
    async () => {
      const { snapshot, nodes, strings } = (await profile("heap")) as HeapSnapshot;
      const { node_fields: fields } = snapshot.meta;
      const nameAt = fields.indexOf("name");
      const names = new Set<string | undefined>();
      for (let node = 0; node < nodes.length; node += fields.length) names.add(strings[nodes[node + nameAt] ?? -1]);
      expect(["KeyController", "IndexedStore"].filter((name) => !names.has(name))).toEqual([]);
    },
    testTimeoutMs,
  );

  test(
    "is a CPU profile with our files and lines",
    async () => {
      const recorded = profile("cpu", "--seconds=3") as Promise<CpuProfile>;
      await keepBusyUntil(recorded);
      const { nodes } = await recorded;
      const ours = nodes.map(({ callFrame }) => callFrame).filter(({ url }) => url.includes("packages/kube/src/"));
      for (const { url, lineNumber } of ours) {
        expect(existsSync(join(repositoryRoot, url.slice(url.indexOf("packages/"))))).toBe(true);
        expect(lineNumber).toBeGreaterThan(0);
      }
      expect(ours.length).toBeGreaterThan(0);
    },
    testTimeoutMs,
  );
});

test(
  "a stack trace of the executable shows our files and lines",
  async () => {
    await server.kill();
    const { error } = await logged("an error", (line) => line["error"] !== undefined && hasFrames(line["error"]));
    const { stack } = error as { readonly stack: string };
    const frames = stack.matchAll(/\((packages\/[\w./-]+\.ts):(\d+):\d+\)/g);
    for (const [, path = "", line] of frames) {
      const text = await Bun.file(join(repositoryRoot, path)).text();
      expect(text.split("\n").length).toBeGreaterThanOrEqual(Number(line));
    }
  },
  testTimeoutMs,
);

const hasFrames = (error: unknown): boolean =>
  /\(packages\/kube\/src\/[\w./-]+\.ts:\d+:\d+\)/.test(JSON.stringify(error));

/** Changes a Stack again and again. */
async function keepBusyUntil(end: Promise<unknown>): Promise<void> {
  const over = new AbortController();
  void end.finally(() => over.abort());
  for (let change = 0; !over.signal.aborted; change++) {
    const body = { metadata: { annotations: { change: String(change) } } };
    await server.client.patch(stacks, { namespace: "default", name: "web" }, { patch: { type: "merge", body } });
  }
}

interface HeapSnapshot {
  readonly snapshot: { readonly meta: { readonly node_fields: readonly string[] } };
  readonly nodes: readonly number[];
  readonly strings: readonly string[];
}

interface CpuProfile {
  readonly nodes: readonly {
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
}
