import { afterAll, describe, expect, test } from "bun:test";
import { systemClock, type Clock } from "@pko/kube";
import { preparations, type AgentPod } from "@pko/operator";
import {
  fail,
  protocolVersion,
  succeed,
  type AgentErrorCode,
  type InfoResult,
  type PrepareMessage,
  type PrepareRequest,
  type PrepareResult,
} from "@pko/rpc";
import { createAuthorities, issueOperatorCertificate, issueWorkspaceCertificate } from "@pko/rpc/pki";
import { serveAgent, type AgentServer, type AgentService } from "@pko/rpc/server";
import { freePort, manualClock, waitFor } from "@pko/testkit";

const web = { namespace: "prod", name: "web" };
const now = new Date();
const authorities = await createAuthorities(now);
const operator = await issueOperatorCertificate(authorities, now);
const certificate = await issueWorkspaceCertificate(authorities, web, now);
const notHere = async () => fail("internal", "not in this test");

const info: InfoResult = {
  protocol: protocolVersion,
  agentVersion: "test",
  hostname: "web-workspace-0",
  startedAt: "2030-01-01T00:00:00Z",
  stopping: false,
  residentBytes: 1,
};

/** Completes each request when the test calls `complete`. */
class PreparingAgent {
  readonly requests: PrepareRequest[] = [];
  refusal: AgentErrorCode | undefined;
  #result = Promise.withResolvers<PrepareResult>();
  #server: AgentServer;

  constructor(port = 0) {
    const service: AgentService = {
      info: async () => succeed(info),
      attach: async () => undefined,
      start: notHere,
      cancel: notHere,
      watch: notHere,
      outputs: notHere,
      plan: notHere,
      record: notHere,
      prepare: async (request) => {
        this.requests.push(request);
        if (this.refusal) return fail(this.refusal, `the agent responds ${this.refusal}`);
        const result = this.#result.promise;
        return succeed(
          (async function* (): AsyncGenerator<PrepareMessage> {
            yield { type: "phase", phase: "install" };
            yield { type: "done", result: await result };
          })(),
        );
      },
    };
    const onFault = (): void => undefined;
    this.#server = serveAgent({
      service,
      hostname: "127.0.0.1",
      port,
      credentials: certificate,
      onFault,
      heartbeatMs: 200,
    });
    afterAll(() => this.close());
  }

  get port(): number {
    return this.#server.port;
  }

  complete(result: PrepareResult): void {
    this.#result.resolve(result);
    this.#result = Promise.withResolvers();
  }

  async close(): Promise<void> {
    await this.#server.stop(true);
  }
}

const ready = {
  ok: true,
  prepared: {
    revision: "abc",
    stack: "dev",
    project: { name: "shop", runtime: "yaml" },
    pulumiVersion: "3.259.0",
    changed: { source: true, dependencies: true, stack: true, config: true },
    timings: { source: 1, install: 1, stack: 1, config: 1 },
  },
} satisfies PrepareResult;

const requestFor = (dir: string): PrepareRequest => ({
  source: { kind: "local", dir },
  stacks: [{ name: "dev", create: true, config: [], environments: [] }],
});

const quick = { baseMs: 20, factor: 2, capMs: 100, jitter: 0 };

function subject({ backoff = quick, clock = systemClock }: { backoff?: typeof quick; clock?: Clock } = {}) {
  const woken: string[] = [];
  const ended: (readonly [phases: string, error: string | undefined])[] = [];
  const preparing = preparations({
    ca: { operatorCredentials: () => operator, distrusted: () => undefined },
    wake: ({ name }) => woken.push(name),
    backoff,
    busyBackoff: quick,
    clock,
    onEnd: (_, { phases, error }) => ended.push([phases.map(({ phase }) => phase).join(), error]),
  });
  return { preparing, woken, ended };
}

function podOf(agent: PreparingAgent, part: Partial<AgentPod> = {}): AgentPod {
  return { ...podAt(agent.port), ...part };
}

function podAt(port: number): AgentPod {
  return { workspace: web, uid: "pod-a", restarts: 0, ip: "127.0.0.1", port };
}

describe("a workspace is prepared", () => {
  test("once for the same request, however often it is made, and whatever the order of its fields", async () => {
    const agent = new PreparingAgent();
    const { preparing, woken, ended } = subject();
    expect(preparing.ensure(podOf(agent), requestFor("/app"))).toEqual({ state: "running" });
    const { source, stacks } = requestFor("/app");
    await waitFor(() => preparing.ensure(podOf(agent), { stacks, source }).state === "running" && woken.length > 0);
    expect(preparing.ensure(podOf(agent), { stacks, source })).toEqual({ state: "running", phase: "install" });
    agent.complete(ready);
    await waitFor(() => preparing.ensure(podOf(agent), requestFor("/app")).state === "done");
    expect(preparing.ensure(podOf(agent), requestFor("/app"))).toEqual({ state: "done", result: ready });
    expect(preparing.projectOf(web)).toEqual({ name: "shop", runtime: "yaml" });
    expect(agent.requests).toHaveLength(1);
    expect(ended).toEqual([["install", undefined]]);
    await preparing.stop();
  });

  test("again for another request, another pod, and a restarted agent", async () => {
    const agent = new PreparingAgent();
    const { preparing } = subject();
    const request = async (pod: AgentPod, wanted: PrepareRequest): Promise<void> => {
      const before = agent.requests.length;
      preparing.ensure(pod, wanted);
      await waitFor(() => agent.requests.length === before + 1);
    };
    await request(podOf(agent), requestFor("/app"));
    await request(podOf(agent), requestFor("/other"));
    await request(podOf(agent, { restarts: 1 }), requestFor("/other"));
    await request(podOf(agent, { uid: "pod-b" }), requestFor("/other"));
    agent.complete(ready);
    await preparing.stop();
  });

  test("with the versions of the CLI that agents of its namespace have reported", async () => {
    const agent = new PreparingAgent();
    const { preparing } = subject();
    const prepared = { ...ready.prepared, cli: "a" };
    const prepare = async (pod: AgentPod, wanted: PrepareRequest): Promise<PrepareRequest | undefined> => {
      const before = agent.requests.length;
      preparing.ensure(pod, wanted);
      await waitFor(() => agent.requests.length === before + 1);
      agent.complete({ ok: true, prepared });
      await waitFor(() => preparing.ensure(pod, wanted).state === "done");
      return agent.requests.at(-1);
    };
    expect(await prepare(podOf(agent), requestFor("/app"))).toEqual(requestFor("/app"));
    const knownClis = [{ cli: "a", version: "3.259.0" }];
    expect(await prepare(podOf(agent, { uid: "b" }), requestFor("/app"))).toEqual({ ...requestFor("/app"), knownClis });
    // What became known is not another request.
    expect(preparing.ensure(podOf(agent, { uid: "b" }), requestFor("/app")).state).toBe("done");
    expect(agent.requests).toHaveLength(2);
    await preparing.stop();
  });

  test("after a failure is reported, only when a retry is requested", async () => {
    const agent = new PreparingAgent();
    const clock = manualClock();
    const { preparing, ended } = subject({ clock });
    preparing.ensure(podOf(agent), requestFor("/app"));
    await waitFor(() => agent.requests.length === 1);
    agent.complete({ ok: false, failure: { phase: "source", reason: "sourceNotFound", message: "no", lines: [] } });
    await waitFor(() => preparing.ensure(podOf(agent), requestFor("/app")).state === "done");
    expect(ended).toEqual([["install", "no"]]);
    // No timer is set, so nothing will happen at any later time.
    expect(clock.pending).toBe(0);
    expect(agent.requests).toHaveLength(1);
    preparing.retry(podOf(agent));
    expect(preparing.ensure(podOf(agent), requestFor("/app")).state).toBe("running");
    await waitFor(() => agent.requests.length === 2);
    await preparing.stop();
  });

  test("again when the agent has lost the result, but not after a failure, nor for another pod", async () => {
    const agent = new PreparingAgent();
    const { preparing } = subject();
    const state = (): string => preparing.ensure(podOf(agent), requestFor("/app")).state;
    preparing.ensure(podOf(agent), requestFor("/app"));
    await waitFor(() => agent.requests.length === 1);
    preparing.renew(podOf(agent), "run-1");
    agent.complete(ready);
    await waitFor(() => state() === "done");
    preparing.renew(podOf(agent, { uid: "pod-b" }), "run-2");
    expect(state()).toBe("done");
    preparing.renew(podOf(agent), "run-3");
    await waitFor(() => agent.requests.length === 2);
    agent.complete({ ok: false, failure: { phase: "source", reason: "sourceNotFound", message: "no", lines: [] } });
    await waitFor(() => state() === "done");
    preparing.renew(podOf(agent), "run-4");
    expect(state()).toBe("done");
    expect(agent.requests).toHaveLength(2);
    await preparing.stop();
  });

  test("again when another request has superseded it", async () => {
    const agent = new PreparingAgent();
    const { preparing } = subject();
    preparing.ensure(podOf(agent), requestFor("/app"));
    await waitFor(() => agent.requests.length === 1);
    agent.complete({ ok: false, failure: { phase: "source", reason: "superseded", message: "no", lines: [] } });
    await waitFor(() => agent.requests.length === 2);
    agent.complete(ready);
    await waitFor(() => preparing.ensure(podOf(agent), requestFor("/app")).state === "done");
    await preparing.stop();
  });

  test("once a busy agent is free", async () => {
    const agent = new PreparingAgent();
    agent.refusal = "busy";
    const { preparing } = subject();
    await waitFor(() => preparing.ensure(podOf(agent), requestFor("/app")).state === "busy");
    agent.refusal = undefined;
    await waitFor(() => preparing.ensure(podOf(agent), requestFor("/app")).state === "running");
    agent.complete(ready);
    await waitFor(() => preparing.ensure(podOf(agent), requestFor("/app")).state === "done");
    await preparing.stop();
  });

  test("with a failure if the agent rejects the request", async () => {
    const agent = new PreparingAgent();
    agent.refusal = "invalidRequest";
    const { preparing } = subject();
    const state = await waitFor(() => {
      const now = preparing.ensure(podOf(agent), requestFor("/app"));
      return now.state === "done" && now;
    });
    expect(state.result).toMatchObject({ ok: false, failure: { message: "the agent responds invalidRequest" } });
    expect(agent.requests).toHaveLength(1);
    await preparing.stop();
  });

  test("immediately when its container has started, however long the backoff was", async () => {
    const port = await freePort();
    const { preparing } = subject({ backoff: { ...quick, baseMs: 600_000, capMs: 600_000 } });
    const pod = podAt(port);
    const startingPod = { ...pod, isStarting: true };
    await waitFor(() => preparing.ensure(startingPod, requestFor("/app")).state === "unreachable");
    expect(preparing.hasResponded(startingPod)).toBe(false);
    const agent = new PreparingAgent(port);
    preparing.ensure(pod, requestFor("/app"));
    await waitFor(() => agent.requests.length === 1);
    await waitFor(() => preparing.hasResponded(startingPod));
    expect(preparing.hasResponded({ ...startingPod, uid: "pod-b" })).toBe(false);
    await preparing.stop();
  });

  test("once an unreachable agent is reachable", async () => {
    const port = await freePort();
    const clock = manualClock();
    const { preparing, woken } = subject({ clock });
    const pod = podAt(port);
    await waitFor(() => preparing.ensure(pod, requestFor("/app")).state === "unreachable");
    const wakes = woken.length;
    const nextAttempt = async (): Promise<void> => {
      await waitFor(() => clock.pending === 1, { what: "the wait for the next attempt" });
      await clock.advance(quick.capMs);
    };
    for (let attempt = 0; attempt < 5; attempt++) await nextAttempt();
    await waitFor(() => clock.pending === 1);
    // The same problem is reported once.
    expect(woken).toHaveLength(wakes);
    const second = new PreparingAgent(port);
    await nextAttempt();
    await waitFor(() => second.requests.length === 1);
    second.complete(ready);
    await waitFor(() => preparing.ensure(pod, requestFor("/app")).state === "done");
    await preparing.stop();
  });

  test("no more once it is forgotten", async () => {
    const agent = new PreparingAgent();
    agent.refusal = "busy";
    const clock = manualClock();
    const { preparing } = subject({ clock });
    await waitFor(() => preparing.ensure(podOf(agent), requestFor("/app")).state === "busy");
    await waitFor(() => clock.pending === 1, { what: "the wait for the next attempt" });
    preparing.forget(web);
    expect(clock.pending).toBe(0);
    expect(agent.requests).toHaveLength(1);
    expect(preparing.projectOf(web)).toBeUndefined();
    await preparing.stop();
  });
});
