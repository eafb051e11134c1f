import { afterAll, describe, expect, test } from "bun:test";
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
import { waitFor } from "@pko/testkit";

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

/** Answers each request when the test says so. */
class PreparingAgent {
  readonly requests: PrepareRequest[] = [];
  refusal: AgentErrorCode | undefined;
  #answer = Promise.withResolvers<PrepareResult>();
  #server: AgentServer;

  constructor(port = 0) {
    const service: AgentService = {
      info: async () => succeed(info),
      attach: async () => undefined,
      start: notHere,
      cancel: notHere,
      watch: notHere,
      outputs: notHere,
      prepare: async (request) => {
        this.requests.push(request);
        if (this.refusal) return fail(this.refusal, `the agent says ${this.refusal}`);
        const answer = this.#answer.promise;
        return succeed(
          (async function* (): AsyncGenerator<PrepareMessage> {
            yield { type: "phase", phase: "install" };
            yield { type: "done", result: await answer };
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

  answer(result: PrepareResult): void {
    this.#answer.resolve(result);
    this.#answer = Promise.withResolvers();
  }

  async close(): Promise<void> {
    await this.#server.stop(true);
  }
}

const ready: PrepareResult = {
  ok: true,
  prepared: {
    revision: "abc",
    stack: "dev",
    project: { name: "shop", runtime: "yaml" },
    pulumiVersion: "3.259.0",
    changed: { source: true, dependencies: true, stack: true, config: true },
    timings: { source: 1, install: 1, stack: 1, config: 1 },
  },
};

const requestFor = (dir: string): PrepareRequest => ({
  source: { kind: "local", dir },
  stacks: [{ name: "dev", create: true, config: [], environments: [] }],
});

const quick = { baseMs: 20, factor: 2, capMs: 100, jitter: 0 };

function subject(backoff = quick) {
  const woken: string[] = [];
  const asked = preparations({
    authority: { operatorCredentials: () => operator, distrusted: () => undefined },
    wake: ({ name }) => woken.push(name),
    backoff,
    patience: quick,
  });
  return { asked, woken };
}

function podOf(agent: PreparingAgent, part: Partial<AgentPod> = {}): AgentPod {
  return { workspace: web, uid: "pod-a", restarts: 0, ip: "127.0.0.1", port: agent.port, ...part };
}

describe("a workspace is prepared", () => {
  test("once for the same request, however often it is asked, and whatever the order of its fields", async () => {
    const agent = new PreparingAgent();
    const { asked, woken } = subject();
    expect(asked.ensure(podOf(agent), requestFor("/app"))).toEqual({ state: "running" });
    const { source, stacks } = requestFor("/app");
    await waitFor(() => asked.ensure(podOf(agent), { stacks, source }).state === "running" && woken.length > 0);
    expect(asked.ensure(podOf(agent), { stacks, source })).toEqual({ state: "running", phase: "install" });
    agent.answer(ready);
    await waitFor(() => asked.ensure(podOf(agent), requestFor("/app")).state === "done");
    expect(asked.ensure(podOf(agent), requestFor("/app"))).toEqual({ state: "done", result: ready });
    expect(asked.projectOf(web)).toEqual({ name: "shop", runtime: "yaml" });
    expect(agent.requests).toHaveLength(1);
    await asked.stop();
  });

  test("anew for another request, another pod, and a restarted agent", async () => {
    const agent = new PreparingAgent();
    const { asked } = subject();
    const ask = async (pod: AgentPod, request: PrepareRequest): Promise<void> => {
      const before = agent.requests.length;
      asked.ensure(pod, request);
      await waitFor(() => agent.requests.length === before + 1);
    };
    await ask(podOf(agent), requestFor("/app"));
    await ask(podOf(agent), requestFor("/other"));
    await ask(podOf(agent, { restarts: 1 }), requestFor("/other"));
    await ask(podOf(agent, { uid: "pod-b" }), requestFor("/other"));
    agent.answer(ready);
    await asked.stop();
  });

  test("a failure is told, and asked again on request only", async () => {
    const agent = new PreparingAgent();
    const { asked } = subject();
    asked.ensure(podOf(agent), requestFor("/app"));
    await waitFor(() => agent.requests.length === 1);
    agent.answer({ ok: false, failure: { phase: "source", reason: "sourceNotFound", message: "no", lines: [] } });
    await waitFor(() => asked.ensure(podOf(agent), requestFor("/app")).state === "done");
    await Bun.sleep(200);
    expect(agent.requests).toHaveLength(1);
    asked.retry(podOf(agent));
    expect(asked.ensure(podOf(agent), requestFor("/app")).state).toBe("running");
    await waitFor(() => agent.requests.length === 2);
    await asked.stop();
  });

  test("what the agent has lost is asked for again; what failed, or another pod had, is not", async () => {
    const agent = new PreparingAgent();
    const { asked } = subject();
    const state = (): string => asked.ensure(podOf(agent), requestFor("/app")).state;
    asked.ensure(podOf(agent), requestFor("/app"));
    await waitFor(() => agent.requests.length === 1);
    asked.renew(podOf(agent));
    agent.answer(ready);
    await waitFor(() => state() === "done");
    asked.renew(podOf(agent, { uid: "pod-b" }));
    expect(state()).toBe("done");
    asked.renew(podOf(agent));
    await waitFor(() => agent.requests.length === 2);
    agent.answer({ ok: false, failure: { phase: "source", reason: "sourceNotFound", message: "no", lines: [] } });
    await waitFor(() => state() === "done");
    asked.renew(podOf(agent));
    expect(state()).toBe("done");
    expect(agent.requests).toHaveLength(2);
    await asked.stop();
  });

  test("a request that another one took the place of is asked again", async () => {
    const agent = new PreparingAgent();
    const { asked } = subject();
    asked.ensure(podOf(agent), requestFor("/app"));
    await waitFor(() => agent.requests.length === 1);
    agent.answer({ ok: false, failure: { phase: "source", reason: "superseded", message: "no", lines: [] } });
    await waitFor(() => agent.requests.length === 2);
    agent.answer(ready);
    await waitFor(() => asked.ensure(podOf(agent), requestFor("/app")).state === "done");
    await asked.stop();
  });

  test("a busy agent is asked until it is free", async () => {
    const agent = new PreparingAgent();
    agent.refusal = "busy";
    const { asked } = subject();
    await waitFor(() => asked.ensure(podOf(agent), requestFor("/app")).state === "busy");
    agent.refusal = undefined;
    await waitFor(() => asked.ensure(podOf(agent), requestFor("/app")).state === "running");
    agent.answer(ready);
    await waitFor(() => asked.ensure(podOf(agent), requestFor("/app")).state === "done");
    await asked.stop();
  });

  test("a request that the agent cannot take is a failure", async () => {
    const agent = new PreparingAgent();
    agent.refusal = "invalidRequest";
    const { asked } = subject();
    const state = await waitFor(() => {
      const now = asked.ensure(podOf(agent), requestFor("/app"));
      return now.state === "done" && now;
    });
    expect(state.result).toMatchObject({ ok: false, failure: { message: "the agent says invalidRequest" } });
    expect(agent.requests).toHaveLength(1);
    await asked.stop();
  });

  test("one that is about to begin is dialled at once when it has, however long the last pause was to be", async () => {
    const first = new PreparingAgent();
    const { port } = first;
    await first.close();
    const { asked } = subject({ ...quick, baseMs: 600_000, capMs: 600_000 });
    const pod = podOf(first, { port });
    const coming = { ...pod, isComing: true };
    await waitFor(() => asked.ensure(coming, requestFor("/app")).state === "unreachable");
    expect(asked.hasAnswered(coming)).toBe(false);
    const agent = new PreparingAgent(port);
    asked.ensure(pod, requestFor("/app"));
    await waitFor(() => agent.requests.length === 1);
    await waitFor(() => asked.hasAnswered(coming));
    expect(asked.hasAnswered({ ...coming, uid: "pod-b" })).toBe(false);
    await asked.stop();
  });

  test("an agent that is not there is dialled until it is", async () => {
    const first = new PreparingAgent();
    const { port } = first;
    await first.close();
    const { asked, woken } = subject();
    const pod = podOf(first, { port });
    await waitFor(() => asked.ensure(pod, requestFor("/app")).state === "unreachable");
    const wakes = woken.length;
    await Bun.sleep(300);
    // The same trouble again is no news.
    expect(woken).toHaveLength(wakes);
    const second = new PreparingAgent(port);
    await waitFor(() => second.requests.length === 1);
    second.answer(ready);
    await waitFor(() => asked.ensure(pod, requestFor("/app")).state === "done");
    await asked.stop();
  });

  test("a workspace that is forgotten is asked for nothing more", async () => {
    const agent = new PreparingAgent();
    agent.refusal = "busy";
    const { asked } = subject();
    await waitFor(() => asked.ensure(podOf(agent), requestFor("/app")).state === "busy");
    asked.forget(web);
    await Bun.sleep(150);
    const { length } = agent.requests;
    await Bun.sleep(300);
    expect(agent.requests).toHaveLength(length);
    expect(asked.projectOf(web)).toBeUndefined();
    await asked.stop();
  });
});
