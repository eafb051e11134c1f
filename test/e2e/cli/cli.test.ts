/** kubectl-pulumi as users run it: the built executable, a real operator, real pods. */
import { join } from "node:path";

import { clusterKubeconfig, repositoryRoot } from "@pko/cluster";
import { beforeAll, expect, test } from "bun:test";

import { applyTo, execInPod, hasReason, isReady, newProgram, newStack, stackUntil, useScene } from "../harness.ts";

const slow = 420_000;
const scene = useScene("cli", { agentErrors: [/conflict/, /locked/] });
const executable = join(repositoryRoot, ".build/cli/e2e/kubectl-pulumi");

beforeAll(async () => {
  const build = Bun.spawn([process.execPath, join(repositoryRoot, "packages/cli/build.ts"), executable]);
  expect(await build.exited).toBe(0);
}, slow);

interface Result {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function cli(...args: readonly string[]): Promise<Result> {
  const child = Bun.spawn([executable, ...args, "-n", scene.namespace], {
    stdout: "pipe",
    stderr: "pipe",
    env: { PATH: process.env["PATH"] ?? "", KUBECONFIG: clusterKubeconfig() },
  });
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { code: await child.exited, out, err };
}

const cause = async (stack: string): Promise<string> =>
  (JSON.parse((await cli("why", stack, "-o", "json")).out) as { cause: string }).cause;

test(
  "a Stack from its first update to a lock that a stranger left",
  async () => {
    await applyTo(
      scene,
      newProgram("greeting", { outputs: { text: "hello", password: { "fn::secret": "hunter2" } } }),
      newStack("web", { programRef: { name: "greeting" } }),
    );
    await stackUntil(scene, "web", isReady);

    expect((await cli("get")).out).toMatch(/web +Ready/);
    expect((await cli("get", "web")).out).toContain("hello");
    expect((await cli("outputs", "web")).out).toContain("[secret]");
    expect((await cli("outputs", "web", "--show-secrets")).out).toContain("hunter2");
    const { out: history } = await cli("history", "web", "-o", "json");
    const [update] = (JSON.parse(history) as { items: { name: string; state: string }[] }).items;
    expect(update?.state).toBe("succeeded");
    expect((await cli("show", update?.name ?? "")).out).toMatch(/Changes: +1 created/);
    expect((await cli("logs", "web")).out).toContain("Updating (web):");
    const { out: log } = await cli("logs", update?.name ?? "");
    expect(log).toContain("run started");
    expect(log.trimEnd()).toEndWith("outcome=succeeded]");
    expect((await cli("events", "web")).out).toContain("StackCreated");

    // Someone else's lock.
    const folder = "/state/.pulumi/locks/organization/greeting/web";
    const lock = { pid: 1, username: "root", hostname: "elsewhere", timestamp: new Date().toISOString() };
    await execInPod(scene, "web", `mkdir -p ${folder} && echo '${JSON.stringify(lock)}' > ${folder}/stranger.json`);
    const conflict = await cli("reconcile", "web", "--wait", "--timeout", "2m");
    expect(conflict.code).toBe(1);
    await stackUntil(scene, "web", hasReason("UpdateConflict"));
    expect(await cause("web")).toBe("locked");
    expect((await cli("unlock", "web")).code).toBe(6);
    const unlocked = await cli("unlock", "web", "--yes");
    expect(unlocked.err).toContain("elsewhere");
    expect(unlocked.code).toBe(0);
    expect((await cli("reconcile", "web", "--wait", "--timeout", "2m")).code).toBe(0);
    expect(await cause("web")).toBe("upToDate");
  },
  slow,
);
