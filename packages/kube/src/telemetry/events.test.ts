import { describe, expect, test } from "bun:test";
import { connect } from "../client/connection.ts";
import { staticCredentials } from "../client/credentials.ts";
import { clippedBytes, eventRecorder, type EventRecorder, type EventRecorderOptions } from "./events.ts";
import type { HttpRequest } from "../client/http.ts";
import { parseJson } from "../client/json.ts";
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

interface Setting {
  readonly clock: ManualClock;
  readonly recorder: EventRecorder;
  readonly metrics: Registry;
  /** Method and body of each request. */
  readonly sent: { method: string; path: string; body: unknown }[];
  readonly logged: string[];
  status: number;
  /** Ends in the order of the requests when set. */
  gate: Promise<void> | undefined;
}

function setting(options: Partial<EventRecorderOptions> = {}): Setting {
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
  const self: Setting = { clock, recorder, metrics, sent: [], logged, status: 200, gate: undefined };
  return self;
}

describe("an event", () => {
  test("is a core/v1 object beside the one it is about", async () => {
    const { recorder, sent } = setting();
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

  test("has a source that may depend on the kind of its object", async () => {
    const { recorder, sent } = setting({ component: ({ kind = "" }) => `${kind.toLowerCase()}-controller` });
    recorder.record(stack, failed);
    await recorder.flush();
    const names = { source: { component: "stack-controller" }, reportingComponent: "stack-controller" };
    expect(sent).toMatchObject([{ body: names }]);
  });

  test("about an object of the cluster is in the namespace default", async () => {
    const { recorder, sent } = setting();
    recorder.record({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" } }, failed);
    await recorder.flush();
    expect(sent).toMatchObject([{ path: "/api/v1/namespaces/default/events" }]);
  });

  test("has a message that fits and holds no secret", async () => {
    const { recorder, sent } = setting({ redact: (text) => text.replaceAll("s3cr3t", "[secret]") });
    recorder.record(stack, { ...failed, message: `s3cr3t ${"é".repeat(2000)}` });
    await recorder.flush();
    expect(JSON.stringify(sent)).not.toContain("s3cr3t");
    expect(JSON.stringify(sent)).toContain("[secret]");
    expect(JSON.stringify(sent)).toContain("é…");
  });

  test("is dropped, not shown, when the redaction fails", async () => {
    const { recorder, sent, metrics } = setting({
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

describe("the same again", () => {
  test("raises the count of the first, within the window", async () => {
    const { clock, recorder, sent } = setting();
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

  test("many times in one pass is one write", async () => {
    const { recorder, sent } = setting();
    for (let i = 0; i < 10; i++) recorder.record(stack, failed);
    await recorder.flush();
    expect(sent).toMatchObject([{ method: "POST", body: { count: 10 } }]);
  });

  test("while the first is being written, is written after it", async () => {
    const self = setting();
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

  test("with another message, reason or object is another event", async () => {
    const { recorder, sent } = setting();
    recorder.record(stack, failed);
    recorder.record(stack, { ...failed, message: "other" });
    recorder.record(stack, { ...failed, reason: "Other" });
    recorder.record({ ...stack, metadata: { ...stack.metadata, uid: "u2" } }, failed);
    await recorder.flush();
    expect(sent.map(({ method }) => method)).toEqual(["POST", "POST", "POST", "POST"]);
  });

  test("after the API server has forgotten it, is created anew", async () => {
    const self = setting();
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
  test("an object has an allowance that refills; what is beyond is counted for later", async () => {
    const { clock, recorder, sent, metrics } = setting({ allowance: { burst: 3, refillMs: 1000 } });
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

  test("a flood while the API server is slow is bounded", async () => {
    const self = setting();
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

  test("a refusal of the API server fails no one", async () => {
    const self = setting();
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

test("a text is cut by bytes, between characters", () => {
  expect(clippedBytes("short", 10)).toBe("short");
  expect(clippedBytes("0123456789", 8)).toBe("01234…");
  expect(clippedBytes("ééééé", 8)).toBe("éé…");
  expect(clippedBytes("😀😀😀", 8)).toBe("😀…");
  for (let limit = 4; limit < 40; limit++) {
    expect(Buffer.byteLength(clippedBytes("aé😀漢".repeat(10), limit))).toBeLessThanOrEqual(limit);
  }
});
