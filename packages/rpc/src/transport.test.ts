import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Type } from "typebox";
import { parseJson } from "./json/check.ts";
import { AgentError, fail, succeed, type AgentErrorCode } from "./errors.ts";
import { workspaceServerName } from "./tls/identity.ts";
import { maxBodyBytes, maxLineBytes, maxPlanChars, maxPlanPartChars } from "./limits.ts";
import type { PrepareMessage } from "./prepare.ts";
import type { OutputsMessage, PlanMessage, WatchMessage } from "./run.ts";
import type { AgentServer, AgentService } from "./server.ts";
import {
  certificates,
  client,
  notice,
  result,
  startAgent,
  web,
  wireTo,
  type Pair,
  type Wire,
} from "./testing/fake-agent.ts";
import { splitBundle } from "./tls/tls.ts";
import { protocolVersion } from "./versions/versions.ts";
import type { WatchUpdate } from "./watch.ts";

let pair: Pair;
beforeAll(async () => {
  pair = await certificates();
});

const open: { agents: AgentServer[]; wires: Wire[] } = { agents: [], wires: [] };
afterAll(async () => {
  for (const wire of open.wires) wire.close();
  await Promise.all(open.agents.map((agent) => agent.stop(true)));
});

function agentWith(overrides: Partial<AgentService>, options: Parameters<typeof startAgent>[2] = {}): AgentServer {
  const agent = startAgent(pair.workspace, overrides, options);
  open.agents.push(agent);
  return agent;
}

async function openWire(port: number): Promise<Wire> {
  const wire = await wireTo(port);
  open.wires.push(wire);
  return wire;
}

async function post(port: number, path: string, init: RequestInit = {}): Promise<Response> {
  return await fetch(`https://127.0.0.1:${port}${path}`, {
    method: "POST",
    ...init,
    tls: {
      ca: splitBundle(pair.operator.ca),
      cert: pair.operator.cert,
      key: pair.operator.key,
      serverName: workspaceServerName(web),
    },
  });
}

async function codeOf(response: Response): Promise<AgentErrorCode | undefined> {
  const body = parseJson(Type.Object({ error: AgentError }), await response.text());
  return body.ok ? body.value.error.code : undefined;
}

describe("requests that violate the protocol", () => {
  const cases: Record<string, { path: string; body: string; init?: RequestInit; code: AgentErrorCode }> = {
    "an unknown method": { path: "/v2/exec", body: "{}", code: "unknownMethod" },
    "a property name that every object has": { path: "/v2/constructor", body: "{}", code: "unknownMethod" },
    "a path outside the version": { path: "/info", body: "{}", code: "unknownMethod" },
    "a GET": { path: "/v2/info", body: "", init: { method: "GET" }, code: "unknownMethod" },
    "a body that is not JSON": { path: "/v2/start", body: "runId=1", code: "invalidRequest" },
    "an empty body": { path: "/v2/start", body: "", code: "invalidRequest" },
    "a missing field": { path: "/v2/start", body: `{"runId":"a"}`, code: "invalidRequest" },
    "a run named like a path": {
      path: "/v2/start",
      body: `{"runId":"../../etc","operation":{"kind":"up"}}`,
      code: "invalidRequest",
    },
    "an unknown kind of operation": {
      path: "/v2/start",
      body: `{"runId":"a","operation":{"kind":"import"}}`,
      code: "invalidRequest",
    },
    "an unknown version": { path: "/v3/start", body: "{}", code: "unknownMethod" },
    "a watch of a run named like a path": {
      path: "/v2/watch",
      body: `{"runId":"../../etc","fromSeq":1}`,
      code: "invalidRequest",
    },
    "JSON a hundred thousand levels deep": {
      path: "/v2/start",
      body: `${"[".repeat(100_000)}${"]".repeat(100_000)}`,
      code: "invalidRequest",
    },
  };
  for (const [name, { path, body, init, code }] of Object.entries(cases)) {
    test(name, async () => {
      const agent = agentWith({});
      const request = init?.method === "GET" ? init : { ...init, body };
      expect(await codeOf(await post(agent.port, path, request))).toBe(code);
    });
  }

  test("a body larger than the limit is rejected before it is read", async () => {
    const agent = agentWith({});
    const response = await post(agent.port, "/v2/start", { body: "x".repeat(maxBodyBytes + 1) });
    expect(response.status).toBe(413);
  });

  test("a secret in an invalid request is not repeated in the error", async () => {
    const agent = agentWith({});
    const body = JSON.stringify({
      source: { kind: "git", url: "https://x", auth: { kind: "token", token: 7, extra: "canary-4711" } },
    });
    const text = await (await post(agent.port, "/v2/prepare", { body })).text();
    expect(text).toContain("invalidRequest");
    expect(text).not.toContain("canary-4711");
  });

  test("an unexpected error of a handler is logged, and the caller does not see its message", async () => {
    const faults = { seen: [] as unknown[] };
    const broken = async (): Promise<never> => {
      throw new Error("canary-4712");
    };
    const agent = agentWith({ info: broken }, { faults });
    const reply = await client(agent.port, pair.operator).info();
    expect(reply).toEqual({
      ok: false,
      error: { code: "internal", message: "the agent failed in info; the log of the workspace's pod has the error" },
    });
    expect(faults.seen).toHaveLength(1);
  });
});

describe("an agent that is older than the operator", () => {
  test("ignores fields that it does not know, at every depth", async () => {
    const seen: unknown[] = [];
    const agent = agentWith({
      start: async (request) => {
        seen.push(request);
        return succeed({ state: "started", lastSeq: 0, progress: result.progress });
      },
      cancel: async (request) => {
        seen.push(request);
        return succeed({ state: "cancelling" });
      },
    });
    const start = { runId: "a", priority: 1, operation: { kind: "up", message: "x", estimate: true } };
    expect((await post(agent.port, "/v2/start", { body: JSON.stringify(start) })).status).toBe(200);
    const cancel = { runId: "a", graceSeconds: 5, force: true };
    expect((await post(agent.port, "/v2/cancel", { body: JSON.stringify(cancel) })).status).toBe(200);
    expect(seen).toEqual([
      { runId: "a", operation: { kind: "up", message: "x" } },
      { runId: "a", graceSeconds: 5 },
    ]);
  });

  test("answers for a run that it knows before it checks the rest of the request", async () => {
    const state = { state: "running" as const, lastSeq: 3, progress: result.progress };
    const agent = agentWith({ attach: async (runId) => (runId === "a" ? succeed(state) : undefined) });
    for (const path of ["/v1/start", "/v2/start"]) {
      const known = await post(agent.port, path, { body: `{"runId":"a","operation":{"kind":"import"}}` });
      expect(await known.json()).toEqual(state);
      const other = await post(agent.port, path, { body: `{"runId":"b","operation":{"kind":"import"}}` });
      expect(await codeOf(other)).toBe("invalidRequest");
    }
  });

  test("needs only the run's ID to watch or cancel it", async () => {
    const seen: unknown[] = [];
    const agent = agentWith({
      watch: async (request) => {
        seen.push(request);
        return fail("notFound", "there is no such run");
      },
      cancel: async (request) => {
        seen.push(request);
        return fail("notFound", "there is no such run");
      },
    });
    await post(agent.port, "/v2/watch", { body: `{"runId":"a","fromSeq":{"event":4}}` });
    await post(agent.port, "/v2/cancel", { body: `{"runId":"a","graceSeconds":"5m"}` });
    expect(seen).toEqual([{ runId: "a", fromSeq: 1 }, { runId: "a" }]);
  });
});

describe("an agent that is newer than the operator", () => {
  /** A message that a later version may send. */
  const later = (message: object): WatchMessage => message as WatchMessage;
  async function* newer(): AsyncGenerator<WatchMessage> {
    yield notice(1);
    yield later({ type: "event", seq: 2, time: "2026-01-01T00:00:00Z", event: { kind: "forecast", resources: 7 } });
    yield later({ type: "estimate", seconds: 9 });
    yield notice(3);
    yield later({ type: "result", seq: 3, result: { ...result, outcome: "failed", error: quota } });
  }
  const quota = { class: "quotaExceeded", message: "no more", lines: [] };
  const expected = { type: "result", result: { outcome: "failed", error: { ...quota, class: "other" } } };

  test("is understood as far as the operator knows its vocabulary", async () => {
    const agent = agentWith({ watch: async () => succeed(newer()) });
    const updates: WatchUpdate[] = [];
    for await (const update of client(agent.port, pair.operator).watch({ runId: "a", fromSeq: 1 }))
      updates.push(update);
    expect(updates).toMatchObject([{ type: "event", seq: 1 }, { type: "event", seq: 3 }, expected]);
  });

  test("does not get a request for the same unknown event after a broken connection", async () => {
    const requested: number[] = [];
    async function* brief(fromSeq: number): AsyncGenerator<WatchMessage> {
      requested.push(fromSeq);
      if (fromSeq > 1) yield { type: "result", seq: 1, result };
      else yield later({ type: "event", seq: 1, time: "2026-01-01T00:00:00Z", event: { kind: "forecast" } });
    }
    const agent = agentWith({ watch: async ({ fromSeq }) => succeed(brief(fromSeq)) });
    const watch = client(agent.port, pair.operator).watch({ runId: "a", fromSeq: 1 }, { backoffMs: 1 });
    for await (const update of watch) expect(update.type).not.toBe("lost");
    expect(requested).toEqual([1, 2]);
  });

  test("sends only what version 1 knows in version 1", async () => {
    const agent = agentWith({ watch: async () => succeed(newer()) });
    const response = await post(agent.port, "/v1/watch", { body: `{"runId":"a","fromSeq":1}` });
    const frames = (await response.text())
      .trim()
      .split("\n")
      .map((line): unknown => JSON.parse(line));
    expect(frames).toMatchObject([
      { frame: "message", message: { type: "event", seq: 1 } },
      { frame: "message", message: { type: "event", seq: 3 } },
      { frame: "message", message: expected },
      { frame: "end" },
    ]);
  });

  test("may return unknown errors: they are retryable, and no run is considered lost", async () => {
    const agent = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      tls: { cert: pair.workspace.cert, key: pair.workspace.key },
      fetch: async ({ url }) =>
        url.endsWith("/v1/info")
          ? Response.json({ ...(await infoResult()), protocol: 3 })
          : Response.json({ error: { code: "archived", message: "in the archive" } }, { status: 404 }),
    });
    const reply = await client(agent.port ?? 0, pair.operator).start({ runId: "a", operation: { kind: "up" } });
    expect(reply).toEqual({ ok: false, error: { code: "failed", message: "in the archive" } });
    await agent.stop(true);
  });
});

describe("versions", () => {
  test("are negotiated once per agreement", async () => {
    let calls = 0;
    const agent = agentWith({
      info: async () => {
        calls += 1;
        return succeed(await infoResult());
      },
    });
    const agreement = {};
    for (let call = 0; call < 3; call += 1) {
      await client(agent.port, pair.operator, { agreement }).cancel({ runId: "a" });
    }
    expect({ calls, agreement }).toEqual({ calls: 1, agreement: { version: 2 } });
    await client(agent.port, pair.operator).cancel({ runId: "a" });
    expect(calls).toBe(2);
  });

  test("an agent of version 1 that has another stack prepared does not start a run", async () => {
    let started = 0;
    const agent = agentWith({
      info: async () => succeed({ ...(await infoResult()), protocol: 1, prepared: { revision: "abc", stack: "dev" } }),
      start: async () => {
        started += 1;
        return succeed({ state: "started", lastSeq: 0, progress: result.progress });
      },
    });
    const call = client(agent.port, pair.operator);
    const other = await call.start({ runId: "a", operation: { kind: "destroy" }, stack: "prod" });
    expect(other.ok || other.error.code).toBe("unsupported");
    expect(started).toBe(0);
    expect((await call.start({ runId: "a", operation: { kind: "destroy" }, stack: "dev" })).ok).toBe(true);
  });
});

describe("calls", () => {
  test("an error from the agent arrives as data, with its code", async () => {
    const agent = agentWith({});
    const reply = await client(agent.port, pair.operator).start({ runId: "a", operation: { kind: "up" } });
    expect(reply).toEqual({ ok: false, error: { code: "busy", message: "another run is active" } });
  });

  test("a call to an agent that does not respond ends at the deadline", async () => {
    const agent = agentWith({ info: () => new Promise(() => undefined) });
    const reply = await client(agent.port, pair.operator, { callTimeoutMs: 100 }).info();
    expect(reply.ok || reply.error.code).toBe("deadline");
  });

  test("the caller may abort earlier", async () => {
    const agent = agentWith({ info: () => new Promise(() => undefined) });
    const reply = await client(agent.port, pair.operator).info({ signal: AbortSignal.timeout(50) });
    expect(reply.ok || reply.error.code).toBe("aborted");
  });

  test("a response that violates the protocol is rejected", async () => {
    const agent = agentWith({
      // @ts-expect-error -- the response of a rogue agent
      info: async () => succeed({ protocol: "one" }),
    });
    const reply = await client(agent.port, pair.operator).info();
    expect(reply.ok || reply.error.code).toBe("protocol");
  });

  test("a response that is too large is rejected", async () => {
    const agent = agentWith({
      info: async () => succeed({ ...(await infoResult()), agentVersion: "x".repeat(maxBodyBytes + 10) }),
    });
    const reply = await client(agent.port, pair.operator).info();
    expect(reply.ok || reply.error.code).toBe("protocol");
  });
});

async function infoResult() {
  return {
    protocol: protocolVersion,
    agentVersion: "test",
    hostname: "h",
    startedAt: "2026-01-01T00:00:00Z",
    stopping: false,
    residentBytes: 1,
  };
}

describe("prepare", () => {
  const request = {
    source: { kind: "local" as const, dir: "/app" },
    stacks: [{ name: "dev", create: true, config: [], environments: [] }],
  };

  test("reports phases, then the result, and sends heartbeats in between", async () => {
    async function* messages(): AsyncGenerator<PrepareMessage> {
      yield { type: "phase", phase: "source" };
      // Longer than `silenceMs`: without heartbeats, the call would end. Both sides have timers of real time.
      await Bun.sleep(7_000);
      yield { type: "phase", phase: "install" };
      const failure = { phase: "install" as const, reason: "installFailed" as const, message: "no", lines: [] };
      yield { type: "done", result: { ok: false, failure } };
    }
    const agent = agentWith({ prepare: async () => succeed(messages()) });
    const phases: string[] = [];
    const caller = client(agent.port, pair.operator, { silenceMs: 6_000 });
    const reply = await caller.prepare(request, { onPhase: (phase) => phases.push(phase) });
    expect(phases).toEqual(["source", "install"]);
    expect(reply.ok && !reply.value.ok && reply.value.failure.reason).toBe("installFailed");
  });

  test("a call to an agent that stops sending ends at the deadline", async () => {
    async function* messages(): AsyncGenerator<PrepareMessage> {
      yield { type: "phase", phase: "source" };
      await Bun.sleep(60_000);
    }
    const agent = agentWith({ prepare: async () => succeed(messages()) }, { heartbeatMs: 60_000 });
    const reply = await client(agent.port, pair.operator, { silenceMs: 400 }).prepare(request);
    expect(reply.ok || reply.error.code).toBe("deadline");
  });
});

describe("a plan", () => {
  const part: PlanMessage = { type: "part", content: "x".repeat(maxPlanPartChars) };
  const send = async (...messages: readonly PlanMessage[]) => {
    const agent = agentWith({ plan: async () => succeed(generate(messages)) });
    return await client(agent.port, pair.operator).plan({ runId: "a" });
  };
  async function* generate(messages: readonly PlanMessage[]): AsyncGenerator<PlanMessage> {
    yield* messages;
  }

  test("arrives in parts, up to the size that a start request may have", async () => {
    const parts = Array.from({ length: Math.floor(maxPlanChars / maxPlanPartChars) }, () => part);
    const reply = await send(...parts, { type: "part", content: "yz" }, { type: "end", digest: "sha256:1" });
    expect(reply.ok && reply.value.digest).toBe("sha256:1");
    expect(reply.ok && reply.value.content.length).toBe(parts.length * maxPlanPartChars + 2);
    expect(reply.ok && reply.value.content.endsWith("xyz")).toBe(true);
  });

  test("that is larger or incomplete is an error", async () => {
    const many = Array.from({ length: Math.ceil(maxPlanChars / maxPlanPartChars) + 1 }, () => part);
    const large = await send(...many, { type: "end", digest: "sha256:1" });
    expect(large.ok || large.error.code).toBe("protocol");
    const incomplete = await send(part);
    expect(incomplete.ok || incomplete.error.code).toBe("unreachable");
  });

  test("of an unknown run is not found", async () => {
    const reply = await client(agentWith({}).port, pair.operator).plan({ runId: "a" });
    expect(reply.ok || reply.error.code).toBe("notFound");
  });
});

describe("a record", () => {
  const record = {
    content: "H4sI",
    omitted: { events: 1, resources: 0, values: 2 },
    versions: { pulumi: "3.1.0" },
    inputs: {},
  };

  test("arrives in one answer", async () => {
    const agent = agentWith({ record: async () => succeed(record) });
    expect(await client(agent.port, pair.operator).record({ runId: "a" })).toEqual(succeed(record));
  });

  test("that is larger than an UpdateRecord may be is an error", async () => {
    const large = { ...record, content: "x".repeat(64 * 1024) };
    const agent = agentWith({ record: async () => succeed(large) });
    const reply = await client(agent.port, pair.operator).record({ runId: "a" });
    expect(reply.ok || reply.error.code).toBe("protocol");
  });
});

describe("outputs", () => {
  test("arrive one by one, each up to the size of a line", async () => {
    const big = "x".repeat(maxLineBytes - 1000);
    async function* messages(): AsyncGenerator<OutputsMessage> {
      yield { type: "output", output: { name: "big", secret: true, known: true, value: big } };
      yield { type: "output", output: { name: "list", secret: false, known: true, value: [1, null, { a: "b" }] } };
      yield { type: "end", count: 2 };
    }
    const agent = agentWith({ outputs: async () => succeed(messages()) });
    const reply = await client(agent.port, pair.operator).outputs({ runId: "a" });
    expect(reply.ok && reply.value.map((output) => output.name)).toEqual(["big", "list"]);
    expect(reply.ok && reply.value[0]?.value === big).toBe(true);
  });

  test("a message larger than a line ends the stream with an error", async () => {
    async function* messages(): AsyncGenerator<OutputsMessage> {
      yield { type: "output", output: { name: "big", secret: true, known: true, value: "x".repeat(maxLineBytes) } };
    }
    const agent = agentWith({ outputs: async () => succeed(messages()) });
    const reply = await client(agent.port, pair.operator).outputs({ runId: "a" });
    expect(reply.ok || reply.error.code).toBe("internal");
  });

  test("an unexpected error within a stream reaches only the agent's log, because it may contain secrets", async () => {
    // oxlint-disable-next-line require-yield -- it throws before it yields
    async function* messages(): AsyncGenerator<OutputsMessage> {
      throw new Error("canary-4713");
    }
    const agent = agentWith({ outputs: async () => succeed(messages()) });
    const reply = await client(agent.port, pair.operator).outputs({ runId: "a" });
    expect(reply).toMatchObject({
      ok: false,
      error: { message: "the agent failed in outputs; the log of the workspace's pod has the error" },
    });
  });

  test("a stream that stops early is not considered complete", async () => {
    async function* messages(): AsyncGenerator<OutputsMessage> {
      yield { type: "output", output: { name: "a", secret: false, known: true, value: 1 } };
    }
    const agent = agentWith({ outputs: async () => succeed(messages()) });
    const reply = await client(agent.port, pair.operator).outputs({ runId: "a" });
    expect(reply.ok || reply.error.code).toBe("unreachable");
  });
});

describe("watch", () => {
  const quick = { backoffMs: 20, maxBackoffMs: 50 };

  async function collect(updates: AsyncIterable<WatchUpdate>): Promise<WatchUpdate[]> {
    const all: WatchUpdate[] = [];
    for await (const update of updates) all.push(update);
    return all;
  }

  function seqs(updates: readonly WatchUpdate[]): number[] {
    return updates.flatMap((update) => (update.type === "event" ? [update.seq] : []));
  }

  /** A run of `count` events, one every `ms` from the first request on, which can be read repeatedly. */
  function slowRun(count: number, ms: number): AgentService["watch"] {
    let startedAt: number | undefined;
    return async ({ fromSeq }) => {
      const start = (startedAt ??= Date.now());
      async function* messages(): AsyncGenerator<WatchMessage> {
        for (let seq = fromSeq; seq <= count; seq += 1) {
          await Bun.sleep(Math.max(0, start + seq * ms - Date.now()));
          yield notice(seq);
        }
        yield { type: "result", seq: count, result };
      }
      return succeed(messages());
    };
  }

  test("replays from a sequence number, then ends with the result", async () => {
    const agent = agentWith({ watch: slowRun(5, 1) });
    const updates = await collect(client(agent.port, pair.operator).watch({ runId: "a", fromSeq: 3 }));
    expect(seqs(updates)).toEqual([3, 4, 5]);
    expect(updates.at(-1)?.type).toBe("result");
  });

  test("broken connections lose and repeat nothing", async () => {
    const agent = agentWith({ watch: slowRun(60, 50) });
    const wire = await openWire(agent.port);
    const cutting = setInterval(() => wire.cut(), 200);
    const updates = await collect(client(wire.port, pair.operator).watch({ runId: "a", fromSeq: 1 }, quick));
    clearInterval(cutting);
    expect(seqs(updates)).toEqual(Array.from({ length: 60 }, (_, index) => index + 1));
    expect(wire.connections()).toBeGreaterThan(3);
    expect(updates.some((update) => update.type === "reconnecting")).toBe(true);
  });

  test("a connection that is open but dead is detected by missing heartbeats", async () => {
    const agent = agentWith({ watch: slowRun(40, 30) });
    const wire = await openWire(agent.port);
    const updates: WatchUpdate[] = [];
    const caller = client(wire.port, pair.operator, { silenceMs: 400 });
    for await (const update of caller.watch({ runId: "a", fromSeq: 1 }, quick)) {
      updates.push(update);
      if (update.type === "event" && update.seq === 10) wire.freeze(true);
      if (update.type === "reconnecting") wire.freeze(false);
    }
    expect(seqs(updates)).toEqual(Array.from({ length: 40 }, (_, index) => index + 1));
    const broken = updates.find((update) => update.type === "reconnecting");
    expect(broken?.error.code).toBe("deadline");
  });

  test("drops events that the agent repeats", async () => {
    const agent = agentWith({
      watch: async () => {
        async function* messages(): AsyncGenerator<WatchMessage> {
          for (const seq of [1, 1, 2, 1, 2, 3]) yield notice(seq);
          yield { type: "result", seq: 3, result };
        }
        return succeed(messages());
      },
    });
    expect(seqs(await collect(client(agent.port, pair.operator).watch({ runId: "a", fromSeq: 1 })))).toEqual([1, 2, 3]);
  });

  test("a run that the agent does not know is lost immediately", async () => {
    const agent = agentWith({});
    const updates = await collect(client(agent.port, pair.operator).watch({ runId: "a", fromSeq: 1 }));
    expect(updates).toEqual([{ type: "lost", error: { code: "notFound", message: "there is no such run" } }]);
  });

  test("a run whose agent stays unreachable is lost after the maximum number of attempts", async () => {
    const updates = await collect(
      client(1, pair.operator).watch({ runId: "a", fromSeq: 1 }, { ...quick, maxAttempts: 3 }),
    );
    expect(updates.map((update) => update.type)).toEqual(["reconnecting", "reconnecting", "reconnecting", "lost"]);
  });

  test("a reader that stops early is not an error of the agent", async () => {
    const faults = { seen: [] as unknown[] };
    const reader = Promise.withResolvers<void>();
    const over = Promise.withResolvers<void>();
    async function* watch(signal: AbortSignal): AsyncGenerator<WatchMessage> {
      yield notice(1);
      signal.addEventListener("abort", () => reader.resolve());
      await reader.promise;
      try {
        yield notice(2);
      } finally {
        over.resolve();
      }
    }
    const agent = agentWith({ watch: async (_, signal) => succeed(watch(signal)) }, { faults });
    for await (const _ of client(agent.port, pair.operator).watch({ runId: "a", fromSeq: 1 })) break;
    await over.promise;
    // Another call has ended since.
    await client(agent.port, pair.operator).info();
    expect(faults.seen).toEqual([]);
  });

  test("the agent sees that a reader stopped", async () => {
    const disconnected = Promise.withResolvers<string>();
    const agent = agentWith({
      watch: async (_, signal) => {
        signal.addEventListener("abort", () => disconnected.resolve("disconnected"));
        async function* messages(): AsyncGenerator<WatchMessage> {
          for (let seq = 1; !signal.aborted; seq += 1) {
            yield notice(seq);
            await Bun.sleep(5);
          }
        }
        return succeed(messages());
      },
    });
    for await (const update of client(agent.port, pair.operator).watch({ runId: "a", fromSeq: 1 })) {
      if (update.type === "event" && update.seq >= 3) break;
    }
    expect(await disconnected.promise).toBe("disconnected");
  });

  test("a slow reader slows its agent down", async () => {
    let produced = 0;
    const agent = agentWith({
      watch: async () => {
        async function* messages(): AsyncGenerator<WatchMessage> {
          for (let seq = 1; seq <= 5_000; seq += 1) {
            produced = seq;
            yield notice(seq, "x".repeat(16_000));
          }
        }
        return succeed(messages());
      },
    });
    const caller = client(agent.port, pair.operator, { silenceMs: 60_000 });
    const reader = caller.watch({ runId: "a", fromSeq: 1 })[Symbol.asyncIterator]();
    await reader.next();
    // An agent that does not wait for its reader produces more until it has answered another call.
    for (let before = 0; produced > before; await caller.info()) before = produced;
    // 80 MB are available; only what fits into sockets and one frame is in flight.
    expect(produced).toBeLessThan(2_500);
    await reader.return?.();
  });
});

describe("a rogue agent's stream", () => {
  const streams: Record<string, { lines: string; code: string }> = {
    "a line that never ends": { lines: "x".repeat(maxLineBytes + 10), code: "protocol" },
    "an unknown kind of frame": { lines: `{"frame":"exec"}\n`, code: "protocol" },
    "a message of another shape": {
      lines: `{"frame":"message","message":{"type":"event","seq":"1"}}\n`,
      code: "protocol",
    },
    "binary noise": { lines: "\u0000\u0001\uFFFD\n", code: "protocol" },
  };
  for (const [name, { lines, code }] of Object.entries(streams)) {
    test(name, async () => {
      const rogue = Bun.serve({
        hostname: "127.0.0.1",
        port: 0,
        tls: {
          ca: splitBundle(pair.workspace.ca),
          cert: pair.workspace.cert,
          key: pair.workspace.key,
          requestCert: true,
          rejectUnauthorized: true,
        },
        fetch: () => new Response(lines),
      });
      const updates: WatchUpdate[] = [];
      const watch = client(rogue.port ?? 0, pair.operator).watch({ runId: "a", fromSeq: 1 }, { maxAttempts: 1 });
      for await (const update of watch) updates.push(update);
      expect(updates.at(-1)).toMatchObject({ type: "lost", error: { code } });
      await rogue.stop(true);
    });
  }

  test("a redirect is not followed", async () => {
    const rogue = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      tls: { cert: pair.workspace.cert, key: pair.workspace.key },
      fetch: () => new Response(null, { status: 307, headers: { location: "http://127.0.0.1:1/" } }),
    });
    const reply = await client(rogue.port ?? 0, pair.operator).info();
    expect(reply.ok).toBe(false);
    await rogue.stop(true);
  });

  test("a call to a server that accepts the connection and sends nothing ends at the deadline", async () => {
    const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => undefined } });
    const reply = await client(silent.port, pair.operator, { callTimeoutMs: 200 }).info();
    expect(reply.ok || reply.error.code).toBe("deadline");
    silent.stop(true);
  });
});
