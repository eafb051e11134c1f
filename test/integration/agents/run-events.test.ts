/** Traces need all events of a run, also those from before a restart of the operator; nothing else reads them again. */
import { afterAll, expect, test } from "bun:test";
import { runs, type AgentPod } from "@pko/operator";
import { noProgress, type NumberedEvent } from "@pko/records";
import { fail, protocolVersion, succeed, type RunResult, type StartResult, type WatchMessage } from "@pko/rpc";
import { createAuthorities, issueOperatorCertificate, issueWorkspaceCertificate } from "@pko/rpc/pki";
import { serveAgent, type AgentService } from "@pko/rpc/server";
import { waitFor } from "@pko/testkit";

const web = { namespace: "prod", name: "web" };
const now = new Date();
const authorities = await createAuthorities(now);
const operator = await issueOperatorCertificate(authorities, now);
const certificate = await issueWorkspaceCertificate(authorities, web, now);
const notHere = async () => fail("internal", "not in this test");
const time = "2026-01-01T00:00:00Z";

const result: RunResult = {
  outcome: "succeeded",
  operation: "destroy",
  stack: "dev",
  revision: "abc",
  startedAt: time,
  finishedAt: time,
  progress: noProgress,
  changes: {},
  output: { tail: "", bytes: 0, truncated: false },
};

/** An agent with a run whose events 1 to 3 are known, of which the operator has missed some. */
function agentWith(started: Partial<StartResult>): AgentPod & { readonly requestedFrom: number[] } {
  const requestedFrom: number[] = [];
  const messages = async function* (fromSeq: number): AsyncGenerator<WatchMessage> {
    for (let seq = fromSeq; seq <= 3; seq++)
      yield { type: "event", seq, time, event: { kind: "notice", message: `event ${seq}` } };
    yield { type: "result", seq: 3, result };
  };
  const service: AgentService = {
    info: async () =>
      succeed({
        protocol: protocolVersion,
        agentVersion: "t",
        hostname: "h",
        startedAt: time,
        stopping: false,
        residentBytes: 1,
      }),
    attach: async () => undefined,
    start: async () => succeed({ state: "running", lastSeq: 2, progress: noProgress, ...started }),
    watch: async ({ fromSeq }) => {
      requestedFrom.push(fromSeq);
      return succeed(messages(fromSeq));
    },
    prepare: notHere,
    cancel: notHere,
    outputs: notHere,
    plan: notHere,
    record: async () => fail("unknownMethod", "not in this test"),
  };
  const server = serveAgent({
    service,
    hostname: "127.0.0.1",
    port: 0,
    credentials: certificate,
    onFault: () => undefined,
  });
  afterAll(() => server.stop(true));
  return { workspace: web, uid: "pod", restarts: 0, ip: "127.0.0.1", port: server.port, requestedFrom };
}

async function follow(pod: AgentPod, { isTraced }: { readonly isTraced: boolean }): Promise<NumberedEvent[]> {
  const events: NumberedEvent[] = [];
  const running = runs({
    ca: { operatorCredentials: () => operator, distrusted: () => undefined },
    preparations: { preparationOf: () => undefined, renew: () => undefined },
    wake: () => undefined,
    ...(isTraced && { onEvent: (_: string, event: NumberedEvent) => events.push(event) }),
  });
  running.ensure(pod, { runId: "run", operation: { kind: "destroy" } });
  await waitFor(() => running.find({ uid: "pod" }, "run")?.state === "finished");
  await running.stop();
  return events;
}

for (const [what, started] of [
  ["is active", {}],
  ["has ended", { state: "finished", lastSeq: 3, result }],
] as const) {
  test(`with traces, all events of a run that ${what} are read`, async () => {
    const pod = agentWith(started);
    const events = await follow(pod, { isTraced: true });
    expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3]);
  });
}

test("without traces, only new events are read, and none of a run that has ended", async () => {
  const active = agentWith({});
  await follow(active, { isTraced: false });
  expect(active.requestedFrom).toEqual([3]);
  const ended = agentWith({ state: "finished", lastSeq: 3, result });
  await follow(ended, { isTraced: false });
  expect(ended.requestedFrom).toEqual([]);
});
