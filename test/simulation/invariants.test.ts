import { expect, test } from "bun:test";

import { ApiFrontend, type ApiRequest } from "./api/server.ts";
import { Storage } from "./api/storage.ts";
import { Invariants } from "./invariants.ts";
import type { Place } from "./place.ts";

/** Nothing of the world is needed for a request that is not fenced. */
function invariants(): Invariants {
  const nothing = { time: { elapsed: 0 }, backend: { state: () => ({}) }, head: "", places: [{}] };
  return new Invariants({
    ...nothing,
    seed: 1,
    stacks: () => [],
    tell: () => undefined,
  } as unknown as ConstructorParameters<typeof Invariants>[0]);
}

const eventWith = (message: string): ApiRequest => ({
  method: "POST",
  path: "/api/v1/namespaces/team/events?fieldManager=operator",
  body: JSON.stringify({ metadata: { name: "web.1", namespace: "team" }, message }),
  headers: {},
  user: "operator",
});

for (const [what, message, count] of [
  ["a secret in an event is a violation", "the password is canary-password-1-x", 1],
  ["an event without a secret is none", "the password is wrong", 0],
] as const) {
  test(what, () => {
    const frontend = new ApiFrontend(new Storage({ now: () => 0, newUid: () => "1" }));
    const checked = invariants();
    const request = eventWith(message);
    const reply = frontend.handle(request);
    expect(reply.status).toBe(201);
    checked.onRequest({} as Place, { request, reply, sender: "operator-1" });
    expect(checked.violations).toHaveLength(count);
  });
}

const updatesPath = "/apis/auto.pulumi.com/v1alpha1/namespaces/team/updates";
const update = {
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "Update",
  metadata: { name: "web-1", namespace: "team" },
  spec: { workspaceName: "web", stackName: "dev", type: "preview" },
};
const completed = { ...update, status: { conditions: [{ type: "Complete", status: "True" }] } };

for (const [what, stored, count] of [
  ["a run that starts while its Update exists is no violation", update, 0],
  ["a run that starts after its Update has ended is a violation", completed, 1],
  ["a run that starts without its Update is a violation", undefined, 1],
] as const) {
  test(what, () => {
    const storage = new Storage({ now: () => 0, newUid: () => "run" });
    const frontend = new ApiFrontend(storage);
    const headers = { "content-type": "application/merge-patch+json" };
    const write = (method: "POST" | "PATCH", path: string, body: object): void => {
      const reply = frontend.handle({ method, path, body: JSON.stringify(body), headers, user: "operator" });
      expect(reply.status).toBeLessThan(300);
    };
    if (stored) write("POST", updatesPath, update);
    if (stored === completed) write("PATCH", `${updatesPath}/web-1/status`, completed);
    const checked = invariants();
    const request = { runId: "run", stack: "dev", operation: { kind: "preview" } } as const;
    const started = { where: "here", request, stack: "dev", content: "1" };
    checked.onStart({ cluster: { storage } } as Place, started);
    expect(checked.violations).toHaveLength(count);
  });
}
