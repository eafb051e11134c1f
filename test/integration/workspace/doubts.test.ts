/** What must not be taken from a store: that nothing runs in a pod that is to go. */
import { expect, test } from "bun:test";

import { connect } from "@pko/kube";
import { updates } from "@pko/operator";
import { faultProxy, waitFor } from "@pko/testkit";

import { apiServerWithApi } from "../api/install.ts";
import { patience, Stage } from "./harness.ts";

const spec = { local: { dir: "/app" }, stacks: [{ name: "dev", create: true }] };

async function heldBack() {
  const server = await apiServerWithApi();
  const proxy = await faultProxy(server.credentials);
  proxy.onEvent(async (_, { resource }) => {
    if (resource === "updates") await new Promise(() => {});
    return "pass" as const;
  });
  const questions = (): number =>
    proxy.requests.filter(({ verb, resource }) => verb === "list" && resource === "updates").length;
  /** The store, once; then twice in doubt. */
  const asked = (): Promise<unknown> =>
    waitFor(() => questions() >= 3, { timeoutMs: 20_000, what: "the Updates to be asked for" });
  return { proxy, asked, client: connect(proxy.credentials) };
}

/** Ready, with an Update in its pod that the operator's store does not show. */
async function withUnseenUpdate(stage: Stage): Promise<void> {
  await stage.create("web", spec);
  await stage.becomes("web", "WaitingForReplicas");
  const { metadata } = await stage.playPod("web");
  await stage.createUpdate("unseen", "web");
  const patch = { type: "merge", body: { status: { podUid: metadata.uid } } } as const;
  await stage.client.patch(updates, stage.at("unseen"), { patch, subresource: "status" });
  await stage.becomes("web", "Succeeded");
}

test(
  "a workspace whose store does not show the Update in its pod is not put to sleep",
  async () => {
    const { proxy, asked, client } = await heldBack();
    await using _ = proxy;
    await using stage = await Stage.open({ idleTimeoutMs: 1500 }, { client });
    await withUnseenUpdate(stage);
    await stage.becomes("web", "Succeeded", "asleep");
    await asked();
    expect((await stage.statefulSet("web")).spec?.replicas).toBe(1);
  },
  patience,
);

test(
  "nor is its pod replaced",
  async () => {
    const { proxy, asked, client } = await heldBack();
    await using _ = proxy;
    await using stage = await Stage.open({}, { client });
    await withUnseenUpdate(stage);
    const { generation } = (await stage.statefulSet("web")).metadata;
    await stage.change("web", { image: "mine:2" });
    await asked();
    expect((await stage.statefulSet("web")).metadata.generation).toBe(generation);
  },
  patience,
);
