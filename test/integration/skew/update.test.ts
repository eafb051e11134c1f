/** The Update controller attaches to a run that the old operator started in an old agent: one start, one result. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { builtin } from "@pko/kube";
import type { AgentPod } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { preparations as oldPreparations } from "../../skew/v1/operator/src/agents/preparations.ts";
import { runs as oldRuns } from "../../skew/v1/operator/src/agents/runs.ts";
import { Gate, gatedProgram } from "../agent/gate.ts";
import { AgentProcess } from "../update/agent-process.ts";
import { UpdateScene } from "../update/scene.ts";
import { compileOldAgent } from "./harness.ts";

const oldAgent = compileOldAgent();
const stack = { name: "dev", create: true, config: [], environments: [] };

test("an Update that runs during the upgrade succeeds, with one process and one result", async () => {
  await using scene = await UpdateScene.open();
  await using agent = new AgentProcess([oldAgent]);
  const workspace = { namespace: scene.namespace, name: "web" };
  const port = await agent.start(scene.ca, workspace);
  await scene.workspace("web");
  await scene.setReady("web", { address: `127.0.0.1:${port}` });
  const { metadata } = await scene.client.get(builtin.pods, scene.ref("web-workspace-0"));
  const pod: AgentPod = { workspace, uid: metadata.uid ?? "", restarts: 0, ip: "127.0.0.1", port };

  const options = { authority: scene.ca, wake: () => undefined };
  const [preparing, running] = [oldPreparations(options), oldRuns(options)];
  await waitFor(() => preparing.ensure(pod, { source: gatedProgram, stack }).state === "done", { timeoutMs: 60_000 });
  const gate = new Gate(join(agent.share, "workspace"));
  const runId = await scene.update("create");
  await waitFor(() => running.ensure(pod, { runId, operation: { kind: "up" } }).state === "running");
  await Promise.all([preparing.stop(), running.stop()]);

  const upgraded = scene.operator();
  await scene.until("create", { Progressing: "True/Progressing" });
  await gate.open("through");
  const created = await scene.until("create", { Complete: "True/Updated", Failed: "False/UpdateSucceeded" });

  expect(created.status?.changes?.["create"]).toBeGreaterThan(0);
  expect(agent.cliCalls().filter((call) => /(?:^|\s)up(?:\s|$)/.test(call))).toHaveLength(1);
  const successes = () => upgraded.events.filter(({ reason }) => reason === "UpdateSucceeded");
  await waitFor(() => successes().length > 0, { what: "the event, which follows the status" });
  expect(successes()).toHaveLength(1);
}, 180_000);
