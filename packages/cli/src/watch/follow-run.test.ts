/** Against a server that answers as the API server does for one run. */
import type { Update } from "@pko/api";
import { connect, staticCredentials } from "@pko/kube";
import { formatFeedLine, type NumberedEvent } from "@pko/records";
import { describe, expect, test } from "bun:test";

import type { Context } from "../context.ts";
import { anUpdate, condition } from "../testing/objects.ts";
import { aRecord, orderEvents } from "../testing/runs.ts";
import { followRun } from "./follow-run.ts";

const uid = "5d7d3e2a-9d0c-4d3e-8a44-5a0a6f3f9a10";
const name = "orders-3f9c1e77ab20";

const update = (isComplete: boolean): Update => {
  const conditions = isComplete ? [condition("Complete", "True", ["Complete", ""])] : [];
  const base = anUpdate(name, {
    spec: { workspaceName: "orders" },
    status: { startTime: "2030-01-01T12:00:00Z", conditions },
  });
  return { ...base, metadata: { ...base.metadata, uid, resourceVersion: "1" } };
};

const finished = JSON.stringify({ level: "info", msg: "run finished", run: uid, outcome: "succeeded" });
const feed = (events: readonly NumberedEvent[], run = uid): string[] =>
  events.map((event) => formatFeedLine(run, event));

const denied = {
  kind: "Status",
  status: "Failure",
  code: 403,
  reason: "Forbidden",
  message:
    'pods "orders-workspace-0" is forbidden: User "eve" cannot get resource "pods/log" in API group "" in the namespace "shop"',
};
const missing = { kind: "Status", status: "Failure", code: 404, reason: "NotFound", message: "not found" };

interface Served {
  /** The log of each request, one after the other; the last one again and again. */
  readonly logs: readonly (readonly string[] | "denied" | "missing")[];
  readonly hasRecord: boolean;
}

/** The Update completes when the log has been read as often as there are logs. */
async function follow({ logs, hasRecord }: Served) {
  let reads = 0;
  const read = Promise.withResolvers<void>();
  const record = JSON.stringify(await aRecord());
  using server = Bun.serve({
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      if (pathname.endsWith("/log")) {
        const log = logs[Math.min(reads, logs.length - 1)] ?? "missing";
        if (++reads === logs.length) read.resolve();
        if (log === "denied") return Response.json(denied, { status: 403 });
        return log === "missing" ? Response.json(missing, { status: 404 }) : new Response(`${log.join("\n")}\n`);
      }
      if (pathname.includes("/updaterecords/")) {
        return hasRecord ? new Response(record) : Response.json(missing, { status: 404 });
      }
      if (searchParams.get("watch") === null) {
        return Response.json({ kind: "UpdateList", metadata: { resourceVersion: "1" }, items: [update(false)] });
      }
      await read.promise;
      return new Response(`${JSON.stringify({ type: "MODIFIED", object: update(true) })}\n`);
    },
  });
  const credentials = staticCredentials({ server: `http://localhost:${server.port}`, token: "t", tls: {} });
  const io = { signal: new AbortController().signal } as Context["io"];
  const client = connect(credentials, { userAgent: "test", attempts: 1 });
  const context: Context = { io, client, credentials, namespace: "shop", allNamespaces: false };
  let changes = 0;
  const followed = await followRun(context, update(false), { changed: () => changes++ });
  return { ...followed, changes };
}

describe("a run is followed", () => {
  test("through the feed in the log, among other lines and other runs", async () => {
    const other = feed(orderEvents.slice(0, 3), "another-run");
    const lines = ["Updating (dev):", ...other, ...feed(orderEvents), '{"level":"info"}', finished];
    const { log, recovered, update: last, changes } = await follow({ logs: [lines], hasRecord: false });
    expect(log.events).toEqual(orderEvents);
    expect(recovered).toBe(0);
    expect(changes).toBeGreaterThan(0);
    expect(last.status?.conditions).toHaveLength(1);
  }, 30_000);

  test("across a pod that does not exist yet and a connection that breaks", async () => {
    const { log } = await follow({
      logs: ["missing", feed(orderEvents.slice(0, 5)), [...feed(orderEvents), finished]],
      hasRecord: false,
    });
    expect(log.events).toEqual(orderEvents);
  }, 30_000);

  test("and what log rotation removed comes from the record", async () => {
    const lines = [...feed(orderEvents.filter(({ seq }) => seq > 6)), finished];
    const { log, recovered } = await follow({ logs: [lines], hasRecord: true });
    expect(recovered).toBe(6);
    expect(log.gaps).toEqual([]);
  }, 30_000);

  test("by its status and its record if the log is forbidden, and the permission is named", async () => {
    const { log, hidden, recovered } = await follow({ logs: ["denied"], hasRecord: true });
    expect(hidden.map(({ permission }) => permission)).toEqual([
      { verb: "get", resource: "pods/log", apiGroup: "", namespace: "shop" },
    ]);
    expect(recovered).toBe(orderEvents.length);
    expect(log.events.map(({ seq }) => seq)).toEqual(orderEvents.map(({ seq }) => seq));
  }, 30_000);
});
