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
