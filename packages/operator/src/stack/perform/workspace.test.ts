/** After a restore of etcd, the store may show a Stack that does not exist: the garbage collector would delete its Workspace at once. */
import { expect, test } from "bun:test";
import type { Stack, Update, Workspace } from "@pko/api";
import type { Client, KubeObject, Store } from "@pko/kube";

import { unlimitedSlots } from "../../shared/channels/slots.ts";
import { viewOf } from "../testing/views.ts";
import type { StackView } from "../view.ts";
import { applyWorkspace } from "./objects.ts";

const workspace: Workspace = {
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "Workspace",
  metadata: { name: "web", namespace: "team" },
};

/** Returns the result, and what was applied to an API server that has only this Stack. */
async function applied(stack: Stack | undefined, view: StackView) {
  const names: (string | undefined)[] = [];
  const client = {
    find: async () => stack,
    apply: async (_: unknown, body: KubeObject) => {
      names.push(body.metadata.name);
      return body;
    },
  } as unknown as Client;
  const { signal } = new AbortController();
  const performer = { client, signal, slots: unlimitedSlots, updates: {} as Store<Update> };
  const { kind } = await applyWorkspace(performer, view, { kind: "applyWorkspace", workspace });
  return [kind, ...names];
}

const view: StackView = { ...viewOf({}), workspace: { kind: "absent" } };
const { stack } = view;
const changed = (metadata: Stack["metadata"]): Stack => ({ ...stack, metadata: { ...stack.metadata, ...metadata } });

test.each<[string, Stack | undefined, string[]]>([
  ["none for a Stack that does not exist any more", undefined, ["stale"]],
  ["none for a Stack that was created again", changed({ uid: "another" }), ["stale"]],
  ["one for a Stack that exists", stack, ["done", "web"]],
  [
    "one for a Stack that is being deleted, to destroy it",
    changed({ deletionTimestamp: "2030-01-01T00:00:00Z" }),
    ["done", "web"],
  ],
])("a missing Workspace is created: %s", async (_, present, expected) => {
  expect(await applied(present, view)).toEqual(expected);
});
