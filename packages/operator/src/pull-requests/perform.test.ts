import { expect, test } from "bun:test";
import type { Stack } from "@pko/api";
import type { Client, KubeObject } from "@pko/kube";

import { performPullRequests, type PullRequestTools } from "./perform.ts";
import { aParent, aPreview, commits, viewOf } from "./testing/views.ts";

const parent = aParent();
const preview = aPreview(parent, { number: 1, commit: commits[0] });

test.each<[string, Stack | undefined, string[]]>([
  ["none for a Stack that does not exist any more", undefined, ["stale"]],
  [
    "none for a Stack that was created again",
    { ...parent, metadata: { ...parent.metadata, uid: "another" } },
    ["stale"],
  ],
  ["one for a Stack that exists", parent, ["done", preview.metadata.name ?? ""]],
])("previews of pull requests are created: %s", async (_, present, expected) => {
  const names: string[] = [];
  const client = {
    find: async (_resource: unknown, { name }: { name: string }) =>
      name === parent.metadata.name ? present : undefined,
    apply: async (_resource: unknown, body: KubeObject) => {
      names.push(body.metadata.name ?? "");
      return body;
    },
  } as unknown as Client;
  const { signal } = new AbortController();
  const step = { kind: "applyPreviews", previews: [{ number: 1, stack: preview }] } as const;
  const tools: PullRequestTools = { client, report: async () => "unavailable" };
  const { kind } = await performPullRequests(tools, step, { view: viewOf({ stack: parent }), signal });
  expect([kind, ...names]).toEqual(expected);
});
