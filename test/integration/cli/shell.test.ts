/** `shell` in a terminal, against the API server. There is no kubelet, so no shell is ever connected. */
import type { Stack } from "@pko/api";
import { waitFor } from "@pko/testkit";
import { describe, expect, setDefaultTimeout, test } from "bun:test";

import { stacks } from "../api/install.ts";
import { CliStage, cliWith, ready, reconciling, testTimeoutMs, type TerminalSession } from "./harness.ts";

setDefaultTimeout(testTimeoutMs);

async function withWorkspace(): Promise<CliStage> {
  const stage = await CliStage.set();
  await stage.stack("web", {}, ready());
  await stage.workspace("web", "Succeeded", "");
  return stage;
}

const readStack = async ({ client, namespace }: CliStage): Promise<Stack> =>
  await client.get(stacks, { namespace, name: "web" });

/** A shell that has suspended the Stack, and waits for the pod. */
async function openShell(stage: CliStage, kubeconfig?: string): Promise<TerminalSession> {
  const session = await suspendedShell(stage, kubeconfig);
  await session.until("Waiting for the workspace pod.");
  return session;
}

async function suspendedShell(stage: CliStage, kubeconfig?: string): Promise<TerminalSession> {
  const session = stage.inTerminal(["shell", "web", "--yes"], kubeconfig);
  await session.until("Shell for Stack web");
  const isSuspended = async (): Promise<boolean> => (await readStack(stage)).spec.suspend === true;
  await waitFor(isSuspended, { timeoutMs: testTimeoutMs / 2, what: "the suspension" });
  const { metadata } = await readStack(stage);
  await stage.status("web", reconciling("Suspended", "suspended", { observedGeneration: metadata.generation ?? 0 }));
  return session;
}

describe("the Stack is resumed", () => {
  test("as it was before: without the field, and without the mark of an open shell", async () => {
    await using stage = await withWorkspace();
    const session = await openShell(stage);
    session.kill("SIGTERM");
    await session.ended();
    const { spec, metadata } = await readStack(stage);
    expect(Object.keys(spec)).not.toContain("suspend");
    expect(Object.keys(metadata.annotations ?? {})).toEqual(["pulumi.com/last-shell"]);
  });

  test("although the user may not patch the Workspace", async () => {
    await using stage = await withWorkspace();
    const read = { apiGroups: ["pulumi.com", "auto.pulumi.com"], resources: ["*"], verbs: ["get", "list", "watch"] };
    const patch = { apiGroups: ["pulumi.com"], resources: ["stacks"], verbs: ["patch"] };
    const kubeconfig = await stage.userConfig("sam", [read, patch]);
    const cli = cliWith(kubeconfig);
    const isGranted = async (): Promise<boolean> => (await cli(["get", "-n", stage.namespace])).code === 0;
    await waitFor(isGranted, { timeoutMs: testTimeoutMs / 2, what: "the role" });
    const session = await suspendedShell(stage, kubeconfig);
    await session.until("cannot patch workspaces");
    await session.ended();
    expect((await readStack(stage)).spec.suspend).toBeUndefined();
  });

  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("at %s", async (signal) => {
    await using stage = await withWorkspace();
    const session = await openShell(stage);
    session.kill(signal);
    expect(await session.ended()).toBe(130);
    expect((await readStack(stage)).spec.suspend).not.toBe(true);
  });

  test("when the terminal is closed", async () => {
    await using stage = await withWorkspace();
    const session = await openShell(stage);
    session.close();
    await session.ended();
    expect((await readStack(stage)).spec.suspend).not.toBe(true);
  });
});

describe("while a shell is open", () => {
  test("a second one is refused, and the first one still resumes the Stack", async () => {
    await using stage = await withWorkspace();
    const session = await openShell(stage);
    const second = stage.inTerminal(["shell", "web", "--yes"]);
    await second.until("A shell of Stack web is open already");
    expect(await second.ended()).toBe(1);
    session.kill("SIGTERM");
    await session.ended();
    expect((await readStack(stage)).spec.suspend).toBeUndefined();
  });

  test("a suspension by somebody else is kept", async () => {
    await using stage = await withWorkspace();
    const session = await openShell(stage);
    expect((await stage.cli(["suspend", "web"])).code).toBe(0);
    session.kill("SIGTERM");
    await session.ended();
    expect((await readStack(stage)).spec.suspend).toBe(true);
  });

  test("resume ends the suspension, and allows another shell", async () => {
    await using stage = await withWorkspace();
    const session = await openShell(stage);
    session.kill("SIGKILL");
    await session.ended();
    await stage.cli(["resume", "web"]);
    const { spec, metadata } = await readStack(stage);
    expect([spec.suspend, metadata.annotations?.["pulumi.com/open-shell"]]).toEqual([false, undefined]);
  });
});

test("a shell needs a terminal, and without one changes nothing", async () => {
  await using stage = await CliStage.set();
  await stage.stack("web", {}, ready());
  const { err, code } = await stage.cli(["shell", "web", "--yes"]);
  expect(code).toBe(2);
  expect(err).toContain("A shell needs a terminal.");
  const { spec, metadata } = await stage.client.get(stacks, { namespace: stage.namespace, name: "web" });
  expect([spec.suspend, metadata.annotations]).toEqual([undefined, undefined]);
});
