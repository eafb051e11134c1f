import { expect, test } from "bun:test";

import type { Client } from "../client/client.ts";
import { manualClock } from "../manual-clock.ts";
import { tokenAccess } from "./token-access.ts";

/** A cluster with the tokens of two users, one of whom may read. */
function cluster() {
  const reviews: string[] = [];
  const create = async (_: unknown, { kind, spec }: { kind: string; spec: { token?: string; user?: string } }) => {
    reviews.push(kind);
    if (kind === "SubjectAccessReview") return { status: { allowed: spec.user === "reader" } };
    const username = { "token-1": "reader", "token-2": "other" }[spec.token ?? ""];
    return { status: username ? { authenticated: true, user: { username } } : {} };
  };
  return { reviews, client: { create } as unknown as Client };
}

const request = (authorization?: string): Request =>
  new Request("https://operator:8383/metrics", { headers: authorization === undefined ? {} : { authorization } });

test("access requires a valid token whose user may get the path", async () => {
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

test("a decision is cached for a minute, so that scrapes put little load on the API server", async () => {
  const { client, reviews } = cluster();
  const clock = manualClock(0);
  const { refuse } = tokenAccess({ client, path: "/metrics", clock });
  await refuse(request("Bearer token-1"));
  await refuse(request("Bearer token-1"));
  expect(reviews).toEqual(["TokenReview", "SubjectAccessReview"]);
  await clock.advance(60_000);
  await refuse(request("Bearer token-1"));
  expect(reviews).toHaveLength(4);
});
