/** `shell` in a terminal, against the API server. There is no kubelet, so no shell is ever connected. */
import type { Stack } from "@pko/api";
import { waitFor } from "@pko/testkit";
import { describe, expect, setDefaultTimeout, test } from "bun:test";

import { stacks } from "../api/install.ts";
import { CliStage, ready, reconciling, testTimeoutMs, type TerminalSession } from "./harness.ts";

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
async function openShell(stage: CliStage): Promise<TerminalSession> {
  const session = stage.inTerminal(["shell", "web", "--yes"]);
  await session.until("Shell for Stack web");
  const isSuspended = async (): Promise<boolean> => (await readStack(stage)).spec.suspend === true;
  await waitFor(isSuspended, { timeoutMs: testTimeoutMs / 4, what: "the suspension" });
  const { metadata } = await readStack(stage);
  await stage.status("web", reconciling("Suspended", "suspended", { observedGeneration: metadata.generation ?? 0 }));
  await session.until("Waiting for the workspace pod.");
  return session;
}

describe("the Stack is resumed", () => {
  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("at %s", async (signal) => {
    await using stage = await withWorkspace();
    const session = await openShell(stage);
    session.kill(signal);
    expect((await session.ended()).code).toBe(130);
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

test("a shell needs a terminal, and without one changes nothing", async () => {
  await using stage = await CliStage.set();
  await stage.stack("web", {}, ready());
  const { err, code } = await stage.cli(["shell", "web", "--yes"]);
  expect(code).toBe(2);
  expect(err).toContain("A shell needs a terminal.");
  const { spec, metadata } = await stage.client.get(stacks, { namespace: stage.namespace, name: "web" });
  expect([spec.suspend, metadata.annotations]).toEqual([undefined, undefined]);
});
