import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Type } from "typebox";
import { parseJson } from "./check.ts";
import { AgentError, fail, succeed, type AgentErrorCode } from "./errors.ts";
import { workspaceServerName } from "./identity.ts";
import { maxBodyBytes, maxLineBytes } from "./limits.ts";
import type { PrepareMessage } from "./prepare.ts";
import type { OutputsMessage, WatchMessage } from "./run.ts";
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
import { splitBundle } from "./tls.ts";
import { protocolVersion } from "./versions.ts";
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

async function wireWith(port: number): Promise<Wire> {
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

describe("requests that do not fit the contract", () => {
  const cases: Record<string, { path: string; body: string; init?: RequestInit; code: AgentErrorCode }> = {
    "an unknown method": { path: "/v2/exec", body: "{}", code: "unknownMethod" },
    "a name of every object": { path: "/v2/constructor", body: "{}", code: "unknownMethod" },
    "a path outside the version": { path: "/info", body: "{}", code: "unknownMethod" },
    "a GET": { path: "/v2/info", body: "", init: { method: "GET" }, code: "unknownMethod" },
    "no JSON": { path: "/v2/start", body: "runId=1", code: "invalidRequest" },
    "an empty body": { path: "/v2/start", body: "", code: "invalidRequest" },
    "a missing field": { path: "/v2/start", body: `{"runId":"a"}`, code: "invalidRequest" },
    "a run named like a path": {
      path: "/v2/start",
      body: `{"runId":"../../etc","operation":{"kind":"up"}}`,
      code: "invalidRequest",
    },
    "an operation of another kind": {
      path: "/v2/start",
      body: `{"runId":"a","operation":{"kind":"import"}}`,
      code: "invalidRequest",
    },
    "a version that there is not": { path: "/v3/start", body: "{}", code: "unknownMethod" },
    "a run named like a path, to be watched": {
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

  test("a body larger than the limit is refused before it is read", async () => {
    const agent = agentWith({});
    const response = await post(agent.port, "/v2/start", { body: "x".repeat(maxBodyBytes + 1) });
    expect(response.status).toBe(413);
  });

  test("a secret in a bad request is not repeated in the refusal", async () => {
    const agent = agentWith({});
    const body = JSON.stringify({
      source: { kind: "git", url: "https://x", auth: { kind: "token", token: 7, extra: "canary-4711" } },
    });
    const text = await (await post(agent.port, "/v2/prepare", { body })).text();
    expect(text).toContain("invalidRequest");
    expect(text).not.toContain("canary-4711");
  });

  test("a fault of a handler is told without its words, and noted", async () => {
    const faults = { seen: [] as unknown[] };
    const broken = async (): Promise<never> => {
      throw new Error("canary-4712");
    };
    const agent = agentWith({ info: broken }, { faults });
    const reply = await client(agent.port, pair.operator).info();
    expect(reply).toEqual({
      ok: false,
      error: { code: "internal", message: "the agent failed in info: its log says why" },
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

  test("answers for a run that it knows before it checks anything else", async () => {
    const state = { state: "running" as const, lastSeq: 3, progress: result.progress };
    const agent = agentWith({ attach: async (runId) => (runId === "a" ? succeed(state) : undefined) });
    for (const path of ["/v1/start", "/v2/start"]) {
      const known = await post(agent.port, path, { body: `{"runId":"a","operation":{"kind":"import"}}` });
      expect(await known.json()).toEqual(state);
      const other = await post(agent.port, path, { body: `{"runId":"b","operation":{"kind":"import"}}` });
      expect(await codeOf(other)).toBe("invalidRequest");
    }
  });

  test("needs no more than the run's id to watch or cancel it", async () => {
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
  /** What a later version may say. */
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

  test("is understood by an operator as far as that knows its words", async () => {
    const agent = agentWith({ watch: async () => succeed(newer()) });
    const updates: WatchUpdate[] = [];
    for await (const update of client(agent.port, pair.operator).watch({ runId: "a", fromSeq: 1 }))
      updates.push(update);
    expect(updates).toMatchObject([{ type: "event", seq: 1 }, { type: "event", seq: 3 }, expected]);
  });

  test("is not asked for an unknown event again after a broken connection", async () => {
    const asked: number[] = [];
    async function* brief(fromSeq: number): AsyncGenerator<WatchMessage> {
      asked.push(fromSeq);
      if (fromSeq > 1) yield { type: "result", seq: 1, result };
      else yield later({ type: "event", seq: 1, time: "2026-01-01T00:00:00Z", event: { kind: "forecast" } });
    }
    const agent = agentWith({ watch: async ({ fromSeq }) => succeed(brief(fromSeq)) });
    const watch = client(agent.port, pair.operator).watch({ runId: "a", fromSeq: 1 }, { backoffMs: 1 });
    for await (const update of watch) expect(update.type).not.toBe("lost");
    expect(asked).toEqual([1, 2]);
  });

  test("says nothing in version 1 that version 1 does not know", async () => {
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

  test("has errors that are unknown: they may pass, and no run is taken for lost", async () => {
    const agent = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      tls: { cert: pair.workspace.cert, key: pair.workspace.key },
      fetch: async ({ url }) =>
        url.endsWith("/v1/info")
          ? Response.json({ ...(await infoOf()), protocol: 3 })
          : Response.json({ error: { code: "archived", message: "in the archive" } }, { status: 404 }),
    });
    const reply = await client(agent.port ?? 0, pair.operator).start({ runId: "a", operation: { kind: "up" } });
    expect(reply).toEqual({ ok: false, error: { code: "failed", message: "in the archive" } });
    await agent.stop(true);
  });
});

describe("versions", () => {
  test("are agreed on once, and again with another agreement", async () => {
    let asked = 0;
    const agent = agentWith({
      info: async () => {
        asked += 1;
        return succeed(await infoOf());
      },
    });
    const agreement = {};
    for (let call = 0; call < 3; call += 1) {
      await client(agent.port, pair.operator, { agreement }).cancel({ runId: "a" });
    }
    expect({ asked, agreement }).toEqual({ asked: 1, agreement: { version: 2 } });
    await client(agent.port, pair.operator).cancel({ runId: "a" });
    expect(asked).toBe(2);
  });

  test("an agent that has another stack prepared is not asked to start in version 1", async () => {
    let started = 0;
    const agent = agentWith({
      info: async () => succeed({ ...(await infoOf()), protocol: 1, prepared: { revision: "abc", stack: "dev" } }),
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
  test("a refusal arrives as data, with its code", async () => {
    const agent = agentWith({});
    const reply = await client(agent.port, pair.operator).start({ runId: "a", operation: { kind: "up" } });
    expect(reply).toEqual({ ok: false, error: { code: "busy", message: "another run is active" } });
  });

  test("an agent that does not answer is given up at the deadline", async () => {
    const agent = agentWith({ info: () => new Promise(() => undefined) });
    const reply = await client(agent.port, pair.operator, { callTimeoutMs: 100 }).info();
    expect(reply.ok || reply.error.code).toBe("deadline");
  });

  test("the caller may give up sooner", async () => {
    const agent = agentWith({ info: () => new Promise(() => undefined) });
    const reply = await client(agent.port, pair.operator).info({ signal: AbortSignal.timeout(50) });
    expect(reply.ok || reply.error.code).toBe("aborted");
  });

  test("an answer that does not fit the contract is not believed", async () => {
    const agent = agentWith({
      // @ts-expect-error -- what a rogue agent answers
      info: async () => succeed({ protocol: "one" }),
    });
    const reply = await client(agent.port, pair.operator).info();
    expect(reply.ok || reply.error.code).toBe("protocol");
  });

  test("an endless answer is hung up on", async () => {
    const agent = agentWith({
      info: async () => succeed({ ...(await infoOf()), agentVersion: "x".repeat(maxBodyBytes + 10) }),
    });
    const reply = await client(agent.port, pair.operator).info();
    expect(reply.ok || reply.error.code).toBe("protocol");
  });
});

async function infoOf() {
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

  test("phases pass by, then the result; silence in between is filled with heartbeats", async () => {
    async function* messages(): AsyncGenerator<PrepareMessage> {
      yield { type: "phase", phase: "source" };
      await Bun.sleep(900);
      yield { type: "phase", phase: "install" };
      const failure = { phase: "install" as const, reason: "installFailed" as const, message: "no", lines: [] };
      yield { type: "done", result: { ok: false, failure } };
    }
    const agent = agentWith({ prepare: async () => succeed(messages()) });
    const phases: string[] = [];
    const reply = await client(agent.port, pair.operator).prepare(request, { onPhase: (phase) => phases.push(phase) });
    expect(phases).toEqual(["source", "install"]);
    expect(reply.ok && !reply.value.ok && reply.value.failure.reason).toBe("installFailed");
  });

  test("an agent that falls silent is given up", async () => {
    async function* messages(): AsyncGenerator<PrepareMessage> {
      yield { type: "phase", phase: "source" };
      await Bun.sleep(60_000);
    }
    const agent = agentWith({ prepare: async () => succeed(messages()) }, { heartbeatMs: 60_000 });
    const reply = await client(agent.port, pair.operator).prepare(request);
    expect(reply.ok || reply.error.code).toBe("deadline");
  });
});

describe("outputs", () => {
  test("arrive one by one, each as large as a line may be", async () => {
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

  test("what breaks within a stream is told to the agent's log alone: it may hold secrets", async () => {
    // oxlint-disable-next-line require-yield -- it breaks before it has anything to say
    async function* messages(): AsyncGenerator<OutputsMessage> {
      throw new Error("canary-4713");
    }
    const agent = agentWith({ outputs: async () => succeed(messages()) });
    const reply = await client(agent.port, pair.operator).outputs({ runId: "a" });
    expect(reply).toMatchObject({ ok: false, error: { message: "the agent failed in outputs: its log says why" } });
  });

  test("a stream that stops before its end is not taken for whole", async () => {
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

  /** A run of `count` events, one each `ms`; whatever is asked for again is told again. */
  function slowRun(count: number, ms: number): AgentService["watch"] {
    const began = Date.now();
    return async ({ fromSeq }) => {
      async function* messages(): AsyncGenerator<WatchMessage> {
        for (let seq = fromSeq; seq <= count; seq += 1) {
          await Bun.sleep(Math.max(0, began + seq * ms - Date.now()));
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

  test("connections that are cut lose and repeat nothing", async () => {
    const agent = agentWith({ watch: slowRun(60, 20) });
    const wire = await wireWith(agent.port);
    const cutting = setInterval(() => wire.cut(), 200);
    const updates = await collect(client(wire.port, pair.operator).watch({ runId: "a", fromSeq: 1 }, quick));
    clearInterval(cutting);
    expect(seqs(updates)).toEqual(Array.from({ length: 60 }, (_, index) => index + 1));
    expect(wire.connections()).toBeGreaterThan(3);
    expect(updates.some((update) => update.type === "reconnecting")).toBe(true);
  });

  test("a connection that is open and dead is noticed by its silence", async () => {
    const agent = agentWith({ watch: slowRun(40, 30) });
    const wire = await wireWith(agent.port);
    setTimeout(() => wire.freeze(true), 300);
    setTimeout(() => wire.freeze(false), 1_000);
    const updates = await collect(client(wire.port, pair.operator).watch({ runId: "a", fromSeq: 1 }, quick));
    expect(seqs(updates)).toEqual(Array.from({ length: 40 }, (_, index) => index + 1));
    const broken = updates.find((update) => update.type === "reconnecting");
    expect(broken?.error.code).toBe("deadline");
  });

  test("a repeating agent is told apart from a progressing one", async () => {
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

  test("a run the agent does not know is lost at once", async () => {
    const agent = agentWith({});
    const updates = await collect(client(agent.port, pair.operator).watch({ runId: "a", fromSeq: 1 }));
    expect(updates).toEqual([{ type: "lost", error: { code: "notFound", message: "there is no such run" } }]);
  });

  test("an agent that stays away is lost after the attempts that were allowed", async () => {
    const updates = await collect(
      client(1, pair.operator).watch({ runId: "a", fromSeq: 1 }, { ...quick, maxAttempts: 3 }),
    );
    expect(updates.map((update) => update.type)).toEqual(["reconnecting", "reconnecting", "reconnecting", "lost"]);
  });

  test("a reader that stops is no fault of the agent, whatever the agent had yet to say", async () => {
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
    await Bun.sleep(50);
    expect(faults.seen).toEqual([]);
  });

  test("a reader may stop, and the agent learns of it", async () => {
    const unread = Promise.withResolvers<string>();
    const agent = agentWith({
      watch: async (_, signal) => {
        signal.addEventListener("abort", () => unread.resolve("unread"));
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
    expect(await Promise.race([unread.promise, Bun.sleep(2_000)])).toBe("unread");
  });

  test("a slow reader holds its agent back", async () => {
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
    const watch = client(agent.port, pair.operator, { silenceMs: 60_000 }).watch({ runId: "a", fromSeq: 1 });
    const reader = watch[Symbol.asyncIterator]();
    await reader.next();
    await Bun.sleep(700);
    // 80 MB were on offer; what is in flight is what sockets and one frame hold.
    expect(produced).toBeLessThan(2_500);
    await reader.return?.();
  });
});

describe("a rogue agent's stream", () => {
  const streams: Record<string, { lines: string; code: string }> = {
    "a line that never ends": { lines: "x".repeat(maxLineBytes + 10), code: "protocol" },
    "a frame of no kind": { lines: `{"frame":"exec"}\n`, code: "protocol" },
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

  test("an agent that opens the connection and says nothing is given up", async () => {
    const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => undefined } });
    const reply = await client(silent.port, pair.operator, { callTimeoutMs: 200 }).info();
    expect(reply.ok || reply.error.code).toBe("deadline");
    silent.stop(true);
  });
});
