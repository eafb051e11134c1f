/** A run belongs to its agent, so it survives crashes of the operator and of the kubelet. */
import { expect, test } from "bun:test";

import { waitFor } from "@pko/testkit";

import { applyTo, isReady, listUpdates, newStack, slowProject, stackUntil, useScene } from "../harness.ts";
import { killKubelet, kubelets } from "./machine.ts";
import { loggedStarts, waitForStart } from "./slow-runs.ts";

const slow = 600_000;
const scene = useScene("kubelet-crash");

test(
  "a slow update continues while the operator and the kubelet are killed, and runs once",
  async () => {
    scene.git.create("slow").commit(slowProject(10));
    await applyTo(scene, newStack("survivor", scene.git.source("slow")));
    await waitForStart(scene, "survivor");
    const [running] = await listUpdates(scene, "survivor");
    await scene.operator.crash();
    const killed = await killKubelet();
    await waitFor(async () => (await kubelets()).some((pid) => pid !== killed), { what: "another kubelet" });
    await stackUntil(scene, "survivor", isReady);
    const updates = await listUpdates(scene, "survivor");
    expect(updates.map(({ metadata }) => metadata.name)).toEqual([running?.metadata.name]);
    // The new kubelet may not serve the command yet.
    const starts = await waitFor(() => loggedStarts(scene, "survivor"), { timeoutMs: 120_000, what: "the log" });
    expect(starts).toEqual(["started"]);
  },
  slow,
);
