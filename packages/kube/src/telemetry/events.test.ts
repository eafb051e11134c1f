import { describe, expect, test } from "bun:test";
import { connect } from "../client/connection/connection.ts";
import { staticCredentials } from "../client/connection/credentials.ts";
import { truncateBytes, eventRecorder, type EventRecorder, type EventRecorderOptions } from "./events.ts";
import type { HttpRequest } from "../client/requests/http.ts";
import { parseJson } from "../client/requests/json.ts";
import { logger } from "./log.ts";
import { manualClock, type ManualClock } from "../manual-clock.ts";
import { metricsRegistry, type Registry } from "./metrics.ts";
import type { KubeObject } from "../resource.ts";

const stack: KubeObject = {
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  metadata: { name: "web", namespace: "dev", uid: "u1", resourceVersion: "7" },
};
const failed = { type: "Warning", reason: "StackUpdateFailure", message: "no luck" } as const;

interface Fixture {
  readonly clock: ManualClock;
  readonly recorder: EventRecorder;
  readonly metrics: Registry;
  /** Method and body of each request. */
  readonly sent: { method: string; path: string; body: unknown }[];
  readonly logged: string[];
  status: number;
  /** If set, requests wait for it. */
  gate: Promise<void> | undefined;
}

function fixture(options: Partial<EventRecorderOptions> = {}): Fixture {
  const clock = manualClock(Date.UTC(2025, 0, 1));
  const metrics = metricsRegistry();
  const logged: string[] = [];
  const transport = async (request: HttpRequest): Promise<Response> => {
    const body = parseJson(request.body ?? "null");
    self.sent.push({ method: request.method, path: new URL(request.url).pathname, body });
    await self.gate;
    return Response.json(body, { status: self.status });
  };
  const client = connect(staticCredentials({ server: "https://api.test", tls: {} }), { transport, clock, attempts: 1 });
  const log = logger({ write: (line) => logged.push(line) });
  const recorder = eventRecorder({ client, component: "operator", instance: "pod-1", clock, metrics, log, ...options });
  const self: Fixture = { clock, recorder, metrics, sent: [], logged, status: 200, gate: undefined };
  return self;
}

describe("an event", () => {
  test("is a core/v1 Event in the namespace of its object", async () => {
    const { recorder, sent } = fixture();
    recorder.record(stack, failed);
    await recorder.flush();
    expect(sent).toMatchObject([
      {
        method: "POST",
        path: "/api/v1/namespaces/dev/events",
        body: {
          involvedObject: { apiVersion: "pulumi.com/v1", kind: "Stack", name: "web", namespace: "dev", uid: "u1" },
          type: "Warning",
          reason: "StackUpdateFailure",
          message: "no luck",
          count: 1,
          firstTimestamp: "2025-01-01T00:00:00Z",
          lastTimestamp: "2025-01-01T00:00:00Z",
          source: { component: "operator" },
          reportingComponent: "operator",
          reportingInstance: "pod-1",
        },
      },
    ]);
  });

  test("can have a source that depends on the kind of its object", async () => {
    const { recorder, sent } = fixture({ component: ({ kind = "" }) => `${kind.toLowerCase()}-controller` });
    recorder.record(stack, failed);
    await recorder.flush();
    const names = { source: { component: "stack-controller" }, reportingComponent: "stack-controller" };
    expect(sent).toMatchObject([{ body: names }]);
  });

  test("about a cluster-scoped object is in the namespace default", async () => {
    const { recorder, sent } = fixture();
    recorder.record({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" } }, failed);
    await recorder.flush();
    expect(sent).toMatchObject([{ path: "/api/v1/namespaces/default/events" }]);
  });

  test("has a truncated message without secrets", async () => {
    const { recorder, sent } = fixture({ redact: (text) => text.replaceAll("s3cr3t", "[secret]") });
    recorder.record(stack, { ...failed, message: `s3cr3t ${"é".repeat(2000)}` });
    await recorder.flush();
    expect(JSON.stringify(sent)).not.toContain("s3cr3t");
    expect(JSON.stringify(sent)).toContain("[secret]");
    expect(JSON.stringify(sent)).toContain("é…");
  });

  test("is dropped when the redaction fails", async () => {
    const { recorder, sent, metrics } = fixture({
      redact: () => {
        throw new Error("broken");
      },
    });
    recorder.record(stack, failed);
    await recorder.flush();
    expect(sent).toEqual([]);
    expect(metrics.expose()).toContain('events_total{fate="unsafe"} 1\n');
  });
});

describe("a repeated event", () => {
  test("increases the count of the first one within the window", async () => {
    const { clock, recorder, sent } = fixture();
    for (const at of [0, 60_000, 60_000]) {
      await clock.advance(at);
      recorder.record({ ...stack, metadata: { ...stack.metadata, resourceVersion: String(at) } }, failed);
      await recorder.flush();
    }
    expect(sent.map(({ method }) => method)).toEqual(["POST", "PATCH", "PATCH"]);
    expect(sent[2]).toMatchObject({ body: { count: 3, lastTimestamp: "2025-01-01T00:02:00Z" } });
    const name = /"name":"(web\.[0-9a-f]+)"/.exec(JSON.stringify(sent[0]))?.[1];
    expect(sent[2]?.path).toBe(`/api/v1/namespaces/dev/events/${name}`);
    clock.stepWallClock(-3_600_000);
    await clock.advance(600_000);
    recorder.record(stack, failed);
    await recorder.flush();
    expect(sent[3]).toMatchObject({ method: "POST", body: { count: 1 } });
  });

  test("is written once if it repeats within one reconcile", async () => {
    const { recorder, sent } = fixture();
    for (let i = 0; i < 10; i++) recorder.record(stack, failed);
    await recorder.flush();
    expect(sent).toMatchObject([{ method: "POST", body: { count: 10 } }]);
  });

  test("is written after the first one if that is being written", async () => {
    const self = fixture();
    const gate = Promise.withResolvers<void>();
    self.gate = gate.promise;
    self.recorder.record(stack, failed);
    await self.clock.advance(1);
    for (let i = 0; i < 3; i++) self.recorder.record(stack, failed);
    gate.resolve();
    await self.recorder.flush();
    expect(self.sent).toMatchObject([
      { method: "POST", body: { count: 1 } },
      { method: "PATCH", body: { count: 4 } },
    ]);
  });

  test("with another message, reason or object is a new event", async () => {
    const { recorder, sent } = fixture();
    recorder.record(stack, failed);
    recorder.record(stack, { ...failed, message: "other" });
    recorder.record(stack, { ...failed, reason: "Other" });
    recorder.record({ ...stack, metadata: { ...stack.metadata, uid: "u2" } }, failed);
    await recorder.flush();
    expect(sent.map(({ method }) => method)).toEqual(["POST", "POST", "POST", "POST"]);
  });

  test("is created again if the API server has deleted it", async () => {
    const self = fixture();
    self.recorder.record(stack, failed);
    await self.recorder.flush();
    self.status = 404;
    self.recorder.record(stack, failed);
    await self.recorder.flush();
    expect(self.sent.map(({ method }) => method)).toEqual(["POST", "PATCH", "POST"]);
    expect(self.sent[2]).toMatchObject({ body: { count: 2 } });
  });
});

describe("limits", () => {
  test("an object has an allowance that refills; further events are counted and written later", async () => {
    const { clock, recorder, sent, metrics } = fixture({ allowance: { burst: 3, refillMs: 1000 } });
    for (let i = 0; i < 5; i++) {
      recorder.record(stack, failed);
      await recorder.flush();
    }
    recorder.record({ ...stack, metadata: { ...stack.metadata, uid: "u2" } }, failed);
    await recorder.flush();
    expect(sent.length).toBe(4);
    expect(metrics.expose()).toContain('events_total{fate="limited"} 2\n');
    await clock.advance(1000);
    recorder.record(stack, failed);
    await recorder.flush();
    expect(sent.at(-1)).toMatchObject({ body: { count: 6 } });
  });

  test("the number of unwritten events is bounded", async () => {
    const self = fixture();
    const gate = Promise.withResolvers<void>();
    self.gate = gate.promise;
    for (let i = 0; i < 3000; i++) {
      self.recorder.record({ ...stack, metadata: { ...stack.metadata, uid: `u${i}` } }, failed);
    }
    gate.resolve();
    await self.recorder.flush();
    expect(self.sent.length).toBe(500);
    expect(self.metrics.expose()).toContain('events_total{fate="overflow"} 2500\n');
  });

  test("a rejection by the API server does not fail the caller", async () => {
    const self = fixture();
    self.status = 403;
    self.recorder.record(stack, failed);
    await self.recorder.flush();
    expect(self.metrics.expose()).toContain('events_total{fate="failed"} 1\n');
    expect(self.logged.join("")).toContain("event could not be written");
    self.status = 200;
    self.recorder.record(stack, failed);
    await self.recorder.flush();
    expect(self.sent.at(-1)).toMatchObject({ method: "POST", body: { count: 2 } });
  });
});

test("a text is truncated to a number of bytes, between characters", () => {
  expect(truncateBytes("short", 10)).toBe("short");
  expect(truncateBytes("0123456789", 8)).toBe("01234…");
  expect(truncateBytes("ééééé", 8)).toBe("éé…");
  expect(truncateBytes("😀😀😀", 8)).toBe("😀…");
  for (let limit = 4; limit < 40; limit++) {
    expect(Buffer.byteLength(truncateBytes("aé😀漢".repeat(10), limit))).toBeLessThanOrEqual(limit);
  }
});
