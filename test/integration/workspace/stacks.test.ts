/** Workspaces that list no stacks, or several. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { builtin } from "@pko/kube";
import type { PrepareFailure } from "@pko/rpc";
import { waitFor } from "@pko/testkit";

import { printedRow } from "../harness/printed.ts";
import { testTimeoutMs, prepared, WorkspaceScene } from "./scene.ts";

setDefaultTimeout(testTimeoutMs);

const spec = { local: { dir: "/app" } };

test("a workspace without stacks is prepared without any, and becomes ready", async () => {
  await using scene = await WorkspaceScene.open();
  const workspace = await scene.ready("web", spec);
  expect(workspace.status?.conditions?.map(({ type }) => type)).toEqual(["Ready"]);
  expect(scene.agents.requests).toMatchObject([{ request: { source: { kind: "local", dir: "/app" }, stacks: [] } }]);
});

test("a workspace without stacks whose image cannot be pulled becomes ready once the image is repaired", async () => {
  await using scene = await WorkspaceScene.open();
  await scene.create("web", { ...spec, image: "example.com/nosuchimage:1" });
  await scene.becomes("web", "WaitingForReplicas");
  const pulling = { reason: "ImagePullBackOff", message: "not found" };
  const stuck = await scene.simulatePod("web", {
    phase: "Pending",
    containerStatuses: [
      { name: "pulumi", image: "i", imageID: "", ready: false, restartCount: 0, state: { waiting: pulling } },
    ],
  });
  await scene.becomes("web", "WaitingForReplicas", "cannot be pulled");
  await scene.change("web", { image: "example.com/pulumi:1" });
  const set = await waitFor(async () => {
    const isRepaired = (await scene.container("web"))?.image === "example.com/pulumi:1";
    return isRepaired && (await scene.statefulSet("web"));
  });
  // Like its controller: it has observed the new template, and keeps the broken pod.
  const status = { observedGeneration: set.metadata.generation, replicas: 1, updateRevision: "repaired" };
  await scene.client.patch(builtin.statefulSets, scene.ref("web-workspace"), {
    patch: { type: "merge", body: { status } },
    subresource: "status",
  });
  await waitFor(
    async () => {
      const pod = await scene.client.find(builtin.pods, scene.ref("web-workspace-0"));
      return pod?.metadata.uid !== stuck.metadata.uid || pod?.metadata.deletionTimestamp !== undefined;
    },
    { timeoutMs: 45_000, what: "the broken pod to be deleted" },
  );
  await scene.simulatePod("web");
  await scene.becomes("web", "Succeeded");
});

test("a workspace with several stacks is prepared with the settings of each, and again when one of them changes", async () => {
  await using scene = await WorkspaceScene.open();
  const dev = { name: "dev", create: true, config: [{ key: "size", value: "small" }], environment: ["base"] };
  const prod = { name: "prod", secretsProvider: "passphrase", config: [{ key: "size", value: "large", secret: true }] };
  await scene.ready("web", { ...spec, stacks: [dev, prod] });
  const wanted = [
    {
      name: "dev",
      create: true,
      config: [{ key: "size", value: { from: "value", value: "small" } }],
      environments: ["base"],
    },
    {
      name: "prod",
      create: false,
      secretsProvider: "passphrase",
      config: [{ key: "size", value: { from: "value", value: "large" }, secret: true }],
      environments: [],
    },
  ];
  expect(scene.agents.requests.map(({ request }) => request.stacks)).toEqual([wanted] as never);
  await scene.change("web", { stacks: [dev] });
  await waitFor(() => scene.agents.requests.length === 2);
  expect(scene.agents.requests.at(-1)?.request.stacks).toEqual(wanted.slice(0, 1) as never);
  await scene.becomes("web", "Succeeded");
});

test("a workspace reports which of its stacks fails, and recovers", async () => {
  await using scene = await WorkspaceScene.open();
  const message = "the stack prod cannot be selected: the stack does not exist";
  const failure: PrepareFailure = { phase: "stack", reason: "stackNotFound", message, lines: [] };
  scene.agents.answer = { state: "done", result: { ok: false, failure } };
  await scene.create("web", { ...spec, stacks: [{ name: "dev", create: true }, { name: "prod" }] });
  await scene.becomes("web", "WaitingForReplicas");
  await scene.simulatePod("web");
  const stalled = await scene.becomes("web", "InitializationFailed", "the stack prod cannot be selected");
  expect(stalled.status?.conditions?.find(({ type }) => type === "Stalled")).toMatchObject({
    status: "True",
    reason: "InitializationFailed",
  });
  const printed = await printedRow({ kinds: "workspaces", ...scene.ref("web") });
  expect(printed).toMatchObject({ READY: "False", REASON: "InitializationFailed" });
  scene.agents.answer = { state: "done", result: prepared };
  await scene.change("web", { stacks: [{ name: "dev", create: true }] });
  await scene.becomes("web", "Succeeded");
});
