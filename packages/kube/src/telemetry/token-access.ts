/**
 * Access control of an endpoint by the cluster: the client sends a bearer token, and the API server decides whose token it
 * is and whether that user may `get` the path. Scrapers usually have a token with access to `/metrics`.
 */
import { createHash } from "node:crypto";

import { mayUser } from "../client/access.ts";
import type { Client } from "../client/client.ts";
import { systemClock, type Clock } from "../clock.ts";
import { resource, type KubeObject } from "../resource.ts";
import type { Answer, Protection } from "./http-server.ts";

interface TokenReview extends KubeObject {
  readonly spec: { readonly token: string };
  readonly status?: { readonly authenticated?: boolean; readonly user?: User };
}

interface User {
  readonly username?: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

const tokenReviews = resource<TokenReview>({
  apiVersion: "authentication.k8s.io/v1",
  kind: "TokenReview",
  plural: "tokenreviews",
  namespaced: false,
});

interface TokenAccessOptions {
  readonly client: Client;
  readonly path: string;
  readonly clock?: Clock;
}

/** Scrapes are frequent, so decisions are cached. */
const cacheMs = 60_000;
const maxCached = 100;

const unauthenticated: Answer = { status: 401, body: "a valid bearer token of the cluster is required\n" };
const forbidden: Answer = { status: 403, body: "the token's user may not get this path\n" };

export function tokenAccess({
  client,
  path,
  clock = systemClock,
}: TokenAccessOptions): Required<Pick<Protection, "refuse">> {
  const decisions = new Map<string, { readonly refusal: Answer | undefined; readonly untilMs: number }>();
  return {
    async refuse(request) {
      const [, token] = /^Bearer (\S+)$/i.exec(request.headers.get("authorization") ?? "") ?? [];
      if (token === undefined) return unauthenticated;
      const key = createHash("sha256").update(token).digest("hex");
      const known = decisions.get(key);
      if (known && clock.monotonic() < known.untilMs) return known.refusal;
      const refusal = await decide(client, token, path);
      if (decisions.size >= maxCached) decisions.clear();
      decisions.set(key, { refusal, untilMs: clock.monotonic() + cacheMs });
      return refusal;
    },
  };
}

async function decide(client: Client, token: string, path: string): Promise<Answer | undefined> {
  const { apiVersion, kind } = tokenReviews;
  const { status } = await client.create(tokenReviews, { apiVersion, kind, metadata: {}, spec: { token } });
  if (!status?.authenticated) return unauthenticated;
  const { username, uid, groups, extra } = status.user ?? {};
  const nonResourceAttributes = { path, verb: "get" };
  const isAllowed = await mayUser(client, { user: username, uid, groups, extra, nonResourceAttributes });
  return isAllowed ? undefined : forbidden;
}
