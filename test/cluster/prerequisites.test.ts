/** A machine that lacks something gets one clear line for it, and nothing is begun. */
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

describe.skipIf(givenKubeconfig !== undefined)("a start of the cluster is refused", () => {
  test("without root", async () => {
    const { env, state } = elsewhere();
    chmodSync(state, 0o777);
    const outcome = await cluster("up", {
      env,
      through: ["setpriv", "--clear-groups", "--reuid=65534", "--regid=65534"],
    });
    expectRefusal(outcome, "this needs root");
  });

  test("without Go", async () => {
    const { env, state } = elsewhere();
    const path = pathWithout("go");
    expectRefusal(await cluster("up", { env: { ...env, PATH: path } }), "Go is missing");
    expect(readdirSync(state)).toEqual([]);
  });

  test("on a full disk", async () => {
    const { env, state } = elsewhere();
    Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", state]);
    cleanups.unshift(() => Bun.spawnSync(["umount", state]));
    expectRefusal(await cluster("up", { env }), "the disk of the state folder has 0.0 GiB free");
    expect(readdirSync(state)).toEqual([]);
  });

  test("when its place in the network is taken", async () => {
    const { env, state } = elsewhere();
    expect(Bun.spawnSync(["ip", "link", "add", network.cable, "type", "bridge"]).exitCode).toBe(0);
    cleanups.push(() => Bun.spawnSync(["ip", "link", "del", network.cable]));
    expectRefusal(await cluster("up", { env }), `the network link ${network.cable} exists`);
    expect(readdirSync(state)).toEqual([]);
  });

  test("when CLUSTER_KUBECONFIG names no file", async () => {
    const outcome = await cluster("up", { env: { CLUSTER_KUBECONFIG: "/nowhere/config" } });
    expectRefusal(outcome, "CLUSTER_KUBECONFIG names /nowhere/config, which does not exist");
  });
});

function expectRefusal(outcome: Outcome, line: string): void {
  expect(outcome.code).toBe(1);
  const lines = outcome.output.trim().split("\n");
  expect(lines).toHaveLength(1);
  expect(lines[0]).toStartWith(`error: ${line}`);
}

/** A state folder of its own, so that a cluster of this clone is not in the way. */
function elsewhere(): { env: Record<string, string>; state: string } {
  const state = mkdtempSync(join(tmpdir(), "pko-state-"));
  cleanups.push(() => rmSync(state, { recursive: true, force: true }));
  return { env: { CLUSTER_STATE: state }, state };
}

function pathWithout(program: string): string {
  const folders = (process.env["PATH"] ?? "").split(":");
  return folders.filter((folder) => Bun.which(program, { PATH: folder }) === null).join(":");
}
