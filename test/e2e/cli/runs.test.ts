/** kubectl-pulumi about runs: the built executable, a real operator, real pods, and a pseudo-terminal where it matters. */
import { join } from "node:path";

import { shellAnnotation } from "@pko/api";
import { clusterKubeconfig, repositoryRoot } from "@pko/cluster";
import { waitFor } from "@pko/testkit";
import { beforeAll, expect, test } from "bun:test";

import { applyTo, isAt, isReady, newStack, requestReconcile, stackUntil, useScene, yamlProject } from "../harness.ts";

const slow = 420_000;
const scene = useScene("cli-runs");
const executable = join(repositoryRoot, ".build/cli/e2e-runs/kubectl-pulumi");
const env = { PATH: process.env["PATH"] ?? "", KUBECONFIG: clusterKubeconfig(), TERM: "xterm" };

beforeAll(async () => {
  const build = Bun.spawn([process.execPath, join(repositoryRoot, "packages/cli/build.ts"), executable]);
  expect(await build.exited).toBe(0);
}, slow);

interface Result {
  readonly code: number;
  readonly out: string;
}

async function cli(...args: readonly string[]): Promise<Result> {
  const child = Bun.spawn([executable, ...args, "-n", scene.namespace], { stdout: "pipe", stderr: "inherit", env });
  return { out: await new Response(child.stdout).text(), code: await child.exited };
}

interface Typist {
  readonly shown: () => string;
  readonly type: (text: string) => void;
}

interface Session {
  /** The end of what it prints. */
  readonly last: RegExp;
  /** Types when something is shown. */
  readonly interact?: (typist: Typist) => Promise<void>;
}

/** In a terminal of 100 columns. */
async function inTerminal(args: readonly string[], { last, interact }: Session): Promise<Result> {
  let out = "";
  const decoder = new TextDecoder();
  await using terminal = new Bun.Terminal({
    cols: 100,
    rows: 30,
    data: (_, data) => (out += decoder.decode(data, { stream: true })),
  });
  const child = Bun.spawn([executable, ...args, "-n", scene.namespace], { terminal, env });
  await interact?.({ shown: () => out, type: (text) => void terminal.write(text) });
  const code = await child.exited;
  // What it printed last may still be in the terminal.
  await waitFor(async () => last.test(out), { timeoutMs: 30_000, what: `the terminal to show ${String(last)}` });
  return { code, out };
}

const shows = async ({ shown }: Typist, text: string): Promise<void> => {
  await waitFor(async () => shown().includes(text), { timeoutMs: 180_000, what: `the terminal to show ${text}` });
};

test(
  "a Stack from its first run to a preview of a branch, and a shell",
  async () => {
    const repository = scene.git.create("site");
    repository.commit(yamlProject("one"));
    const watched = inTerminalWhenCreated();
    const { out, code } = await watched;
    expect(code).toBe(0);
    expect(out).toContain("\u001B[J");
    await stackUntil(scene, "site", isReady);

    const history = JSON.parse((await cli("history", "site", "-o", "json")).out) as { items: { name: string }[] };
    const first = history.items[0]?.name ?? "";
    expect((await cli("show", first)).out).toMatch(/^create /m);
    expect((await cli("tree", "site")).out).toContain("pulumi:pulumi:Stack");
    expect((await cli("logs", first)).out).not.toContain('"feed"');
    const urn = /urn:pulumi:\S+/.exec((await cli("tree", "site", "-o", "json")).out)?.[0].replace(/",?$/, "") ?? "";
    expect((await cli("trace", urn)).out).toContain(`${scene.namespace}/site`);

    const second = repository.commit(yamlProject("two"));
    await requestReconcile(scene, "site", "second");
    const lines = await cli("watch", "site");
    expect(lines.code).toBe(0);
    expect(lines.out).toContain("up started");
    await stackUntil(scene, "site", isAt(second));
    const runs = JSON.parse((await cli("history", "site", "-o", "json")).out) as { items: { name: string }[] };
    expect((await cli("diff", first, runs.items[0]?.name ?? "")).out).toContain("revision");

    const preview = await cli("preview", "site", "--ref", second);
    expect(preview.code).toBe(0);
    expect(preview.out).toContain("of Stack site");

    const shell = await inTerminal(["shell", "site"], {
      last: /The state is refreshed\. Stack site is resumed\./,
      async interact(typist) {
        await shows(typist, "[y/N]");
        typist.type("y\r");
        await shows(typist, "$ ");
        typist.type("pulumi stack --show-name; echo in-$((40 + 2))\r");
        await shows(typist, "in-42");
        typist.type("exit\r");
      },
    });
    expect(shell.code).toBe(0);
    const { spec, metadata } = await stackUntil(scene, "site", isReady);
    expect(spec.suspend).toBeUndefined();
    expect(metadata.annotations?.[shellAnnotation]).toMatch(/^\S+Z \S+/);
    expect((await cli("events", "site")).out).toContain("ShellOpened");
  },
  slow,
);

/** `watch` waits for the first run. */
async function inTerminalWhenCreated(): Promise<Result> {
  await applyTo(scene, newStack("site", scene.git.source("site")));
  return await inTerminal(["watch", "site", "--timeout", "5m"], { last: /The up \S+ of Stack site succeeded/ });
}
