/** Workspaces that list no stacks, or several. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { builtin } from "@pko/kube";
import type { PrepareFailure } from "@pko/rpc";
import { waitFor } from "@pko/testkit";

import { testTimeoutMs, prepared, Stage } from "./harness.ts";

setDefaultTimeout(testTimeoutMs);

const spec = { local: { dir: "/app" } };

test("a workspace without stacks is prepared without any, and becomes ready", async () => {
  await using stage = await Stage.open();
  const workspace = await stage.ready("web", spec);
  expect(workspace.status?.conditions?.map(({ type }) => type)).toEqual(["Ready"]);
  expect(stage.agents.requests).toMatchObject([{ request: { source: { kind: "local", dir: "/app" }, stacks: [] } }]);
});

test("a workspace without stacks whose image cannot be pulled becomes ready once the image is repaired", async () => {
  await using stage = await Stage.open();
  await stage.create("web", { ...spec, image: "example.com/nosuchimage:1" });
  await stage.becomes("web", "WaitingForReplicas");
  const pulling = { reason: "ImagePullBackOff", message: "not found" };
  const stuck = await stage.simulatePod("web", {
    phase: "Pending",
    containerStatuses: [
      { name: "pulumi", image: "i", imageID: "", ready: false, restartCount: 0, state: { waiting: pulling } },
    ],
  });
  await stage.becomes("web", "WaitingForReplicas", "cannot be pulled");
  await stage.change("web", { image: "example.com/pulumi:1" });
  const set = await waitFor(async () => {
    const each = await stage.statefulSet("web");
    return each.spec?.template.spec?.containers[0]?.image === "example.com/pulumi:1" && each;
  });
  // Like its controller: it has observed the new template, and keeps the broken pod.
  const status = { observedGeneration: set.metadata.generation, replicas: 1, updateRevision: "repaired" };
  await stage.client.patch(builtin.statefulSets, stage.at("web-workspace"), {
    patch: { type: "merge", body: { status } },
    subresource: "status",
  });
  await waitFor(
    async () => {
      const pod = await stage.client.find(builtin.pods, stage.at("web-workspace-0"));
      return pod?.metadata.uid !== stuck.metadata.uid || pod?.metadata.deletionTimestamp !== undefined;
    },
    { timeoutMs: 15_000, what: "the broken pod to be deleted" },
  );
  await stage.simulatePod("web");
  await stage.becomes("web", "Succeeded");
});

test("a workspace with several stacks is prepared with the settings of each, and again when one of them changes", async () => {
  await using stage = await Stage.open();
  const dev = { name: "dev", create: true, config: [{ key: "size", value: "small" }], environment: ["base"] };
  const prod = { name: "prod", secretsProvider: "passphrase", config: [{ key: "size", value: "large", secret: true }] };
  await stage.ready("web", { ...spec, stacks: [dev, prod] });
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
  expect(stage.agents.requests.map(({ request }) => request.stacks)).toEqual([wanted] as never);
  await stage.change("web", { stacks: [dev] });
  await waitFor(() => stage.agents.requests.length === 2);
  expect(stage.agents.requests.at(-1)?.request.stacks).toEqual(wanted.slice(0, 1) as never);
  await stage.becomes("web", "Succeeded");
});

test("a workspace reports which of its stacks fails, and recovers", async () => {
  await using stage = await Stage.open();
  const message = "the stack prod cannot be selected: the stack does not exist";
  const failure: PrepareFailure = { phase: "stack", reason: "stackNotFound", message, lines: [] };
  stage.agents.answer = { state: "done", result: { ok: false, failure } };
  await stage.create("web", { ...spec, stacks: [{ name: "dev", create: true }, { name: "prod" }] });
  await stage.becomes("web", "WaitingForReplicas");
  await stage.simulatePod("web");
  const stalled = await stage.becomes("web", "InitializationFailed", "the stack prod cannot be selected");
  expect(stalled.status?.conditions?.find(({ type }) => type === "Stalled")).toMatchObject({
    status: "True",
    reason: "InitializationFailed",
  });
  stage.agents.answer = { state: "done", result: prepared };
  await stage.change("web", { stacks: [{ name: "dev", create: true }] });
  await stage.becomes("web", "Succeeded");
});
