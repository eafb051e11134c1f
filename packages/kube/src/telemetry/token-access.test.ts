import { expect, test } from "bun:test";

import type { Client } from "../client/client.ts";
import { manualClock } from "../manual-clock.ts";
import { tokenAccess } from "./token-access.ts";

/** A cluster that knows the tokens of two users, one of whom may read. */
function cluster() {
  const asked: string[] = [];
  const create = async (_: unknown, { kind, spec }: { kind: string; spec: { token?: string; user?: string } }) => {
    asked.push(kind);
    if (kind === "SubjectAccessReview") return { status: { allowed: spec.user === "reader" } };
    const username = { "token-1": "reader", "token-2": "other" }[spec.token ?? ""];
    return { status: username ? { authenticated: true, user: { username } } : {} };
  };
  return { asked, client: { create } as unknown as Client };
}

const request = (authorization?: string): Request =>
  new Request("https://operator:8383/metrics", { headers: authorization === undefined ? {} : { authorization } });

test("a token is needed, a known one, and one whose user may", async () => {
  const { client } = cluster();
  const { refuse } = tokenAccess({ client, path: "/metrics" });
  const statusFor = async (authorization?: string): Promise<number> =>
    (await refuse(request(authorization)))?.status ?? 200;
  expect(await statusFor()).toBe(401);
  expect(await statusFor("Basic dXNlcjpwYXNz")).toBe(401);
  expect(await statusFor("Bearer unknown")).toBe(401);
  expect(await statusFor("Bearer token-2")).toBe(403);
  expect(await statusFor("Bearer token-1")).toBe(200);
});

test("a decision is remembered for a minute, so that scrapes cost the API server little", async () => {
  const { client, asked } = cluster();
  const clock = manualClock(0);
  const { refuse } = tokenAccess({ client, path: "/metrics", clock });
  await refuse(request("Bearer token-1"));
  await refuse(request("Bearer token-1"));
  expect(asked).toEqual(["TokenReview", "SubjectAccessReview"]);
  await clock.advance(60_000);
  await refuse(request("Bearer token-1"));
  expect(asked).toHaveLength(4);
});
