/** The end of a leadership term, in a process that may lead again. */
import { expect, test } from "bun:test";
import { builtin, reflector, type Client, type EventRecorder } from "@pko/kube";

import { approvals, programs, stacks, updates, workspaces } from "./kinds.ts";
import { stackController } from "./stack/controller.ts";
import { ownedUpdateIndexers, stackIndexers } from "./stack/indexes.ts";
import { approvalIndexers } from "./shared/approvals.ts";
import { clearances } from "./shared/channels/clearances.ts";
import { updateIndexers } from "./shared/updates.ts";
import { podIndexers, statefulSetIndexers, workspaceController } from "./workspace/index.ts";

/** It gets no request in a term that ends when it starts. */
const client = {} as Client;
const events: EventRecorder = { record: () => undefined, flush: () => Promise.resolve() };
const reflectors = {
  stacks: reflector(client, stacks, { indexers: stackIndexers }),
  programs: reflector(client, programs),
  workspaces: reflector(client, workspaces),
  updates: reflector(client, updates, { indexers: { ...updateIndexers, ...ownedUpdateIndexers } }),
  approvals: reflector(client, approvals, { indexers: approvalIndexers }),
  statefulSets: reflector(client, builtin.statefulSets, { indexers: statefulSetIndexers }),
  pods: reflector(client, builtin.pods, { indexers: podIndexers }),
};
const unknown = { kind: "unknown" } as const;
const ended = { stop: AbortSignal.abort(), kill: AbortSignal.abort() };

test("no Update may start in the next term because of what was read in this one", async () => {
  const cleared = clearances(() => undefined);
  cleared.set("team/web", ["team/web-1"]);
  const controller = workspaceController({
    client,
    reflectors,
    events,
    ca: {
      assess: () => Promise.reject(new Error("unexpected")),
      workspaceCertificate: () => Promise.reject(new Error("unexpected")),
    },
    preparations: {} as never,
    runs: {} as never,
    clearances: cleared,
    settings: { agentImage: "agent", idleTimeoutMs: 0 },
  });
  await controller.run(ended);
  expect(cleared.has("team/web", "team/web-1")).toBe(false);
});

test("the Stack controller does not stop what it shares with others", async () => {
  let stops = 0;
  const references = { follow: () => undefined, forget: () => undefined, stop: () => void stops++ };
  const git = { policy: { allowHttp: false, allowedAddresses: [] } };
  const approvalPolicy = {
    state: () => unknown,
    follow: () => undefined,
    need: () => undefined,
    forget: () => undefined,
    stop: () => undefined,
  };
  await stackController({ client, reflectors, events, git, references, approvalPolicy }).run(ended);
  expect(stops).toBe(0);
});
