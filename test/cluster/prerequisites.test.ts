/** Each unmet requirement is reported in one line, and nothing is started. */
import { afterEach, describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { givenKubeconfig, network } from "@pko/cluster";

import { cluster, type Outcome } from "./make.ts";

const cleanups: (() => void)[] = [];

afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

describe.skipIf(givenKubeconfig !== undefined)("the cluster does not start", () => {
  test("without root", async () => {
    const { env, state } = separateState();
    chmodSync(state, 0o777);
    const outcome = await cluster("up", {
      env,
      prefix: ["setpriv", "--clear-groups", "--reuid=65534", "--regid=65534"],
    });
    expectError(outcome, "this needs root");
  });

  test("without Go", async () => {
    const { env, state } = separateState();
    const path = pathWithout("go");
    expectError(await cluster("up", { env: { ...env, PATH: path } }), "Go is missing");
    expect(readdirSync(state)).toEqual([]);
  });

  test("on a full disk", async () => {
    const { env, state } = separateState();
    Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", state]);
    cleanups.unshift(() => Bun.spawnSync(["umount", state]));
    expectError(await cluster("up", { env }), "the disk of the state folder has 0.0 GiB free");
    expect(readdirSync(state)).toEqual([]);
  });

  test("when its network link exists", async () => {
    const { env, state } = separateState();
    expect(Bun.spawnSync(["ip", "link", "add", network.link, "type", "bridge"]).exitCode).toBe(0);
    cleanups.push(() => Bun.spawnSync(["ip", "link", "del", network.link]));
    expectError(await cluster("up", { env }), `the network link ${network.link} exists`);
    expect(readdirSync(state)).toEqual([]);
  });

  test("when CLUSTER_KUBECONFIG is not a file", async () => {
    const outcome = await cluster("up", { env: { CLUSTER_KUBECONFIG: "/nowhere/config" } });
    expectError(outcome, "CLUSTER_KUBECONFIG is /nowhere/config, which does not exist");
  });
});

function expectError(outcome: Outcome, line: string): void {
  expect(outcome.code).toBe(1);
  const lines = outcome.output.trim().split("\n");
  expect(lines).toHaveLength(1);
  expect(lines[0]).toStartWith(`error: ${line}`);
}

/** A separate state folder, so that a running cluster of this clone does not interfere. */
function separateState(): { env: Record<string, string>; state: string } {
  const state = mkdtempSync(join(tmpdir(), "pko-state-"));
  cleanups.push(() => rmSync(state, { recursive: true, force: true }));
  return { env: { CLUSTER_STATE: state }, state };
}

function pathWithout(program: string): string {
  const folders = (process.env["PATH"] ?? "").split(":");
  return folders.filter((folder) => Bun.which(program, { PATH: folder }) === null).join(":");
}
