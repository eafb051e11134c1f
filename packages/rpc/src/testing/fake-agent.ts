/** For tests of the transport: a configurable agent, certificates, and a proxy whose connections can be cut. */
import { createServer, connect, type Socket } from "node:net";
import { connectAgent, type AgentClient, type ConnectOptions } from "../client.ts";
import { fail, succeed } from "../errors.ts";
import { noProgress } from "@pko/records";
import { workspaceServerName } from "../tls/identity.ts";
import {
  createAuthorities,
  issueOperatorCertificate,
  issueWorkspaceCertificate,
  type Certificate,
  type Authorities,
} from "../tls/pki.ts";
import type { RunResult, WatchMessage } from "../run.ts";
import { serveAgent, type AgentServer, type AgentService } from "../server.ts";
import { protocolVersion } from "../versions/versions.ts";

export const web = { namespace: "prod", name: "web" };

export const result: RunResult = {
  outcome: "succeeded",
  operation: "up",
  stack: "dev",
  revision: "abc",
  startedAt: "2026-01-01T00:00:00Z",
  finishedAt: "2026-01-01T00:00:01Z",
  progress: noProgress,
  changes: {},
  output: { tail: "", bytes: 0, truncated: false },
};

const service: AgentService = {
  info: async () =>
    succeed({
      protocol: protocolVersion,
      agentVersion: "test",
      hostname: "web-workspace-0",
      startedAt: "2026-01-01T00:00:00Z",
      stopping: false,
      residentBytes: 1,
    }),
  attach: async () => undefined,
  start: async () => fail("busy", "another run is active"),
  cancel: async () => fail("notFound", "there is no such run"),
  prepare: async () => fail("internal", "not in this test"),
  watch: async () => fail("notFound", "there is no such run"),
  outputs: async () => fail("notFound", "there is no such run"),
  plan: async () => fail("notFound", "there is no such run"),
  record: async () => fail("notFound", "there is no such run"),
};

export function notice(seq: number, text = "x"): WatchMessage {
  return { type: "event", seq, time: "2026-01-01T00:00:00Z", event: { kind: "notice", message: text } };
}

export interface Pair {
  readonly authorities: Authorities;
  readonly operator: Certificate;
  readonly workspace: Certificate;
}

export async function certificates(): Promise<Pair> {
  const now = new Date();
  const authorities = await createAuthorities(now);
  return {
    authorities,
    operator: await issueOperatorCertificate(authorities, now),
    workspace: await issueWorkspaceCertificate(authorities, web, now),
  };
}

interface Faults {
  readonly seen: unknown[];
}

export function startAgent(
  certificate: Certificate,
  overrides: Partial<AgentService>,
  options: { readonly heartbeatMs?: number; readonly faults?: Faults } = {},
): AgentServer {
  return serveAgent({
    service: { ...service, ...overrides },
    hostname: "127.0.0.1",
    port: 0,
    credentials: certificate,
    heartbeatMs: options.heartbeatMs ?? 50,
    onFault: (_, error) => options.faults?.seen.push(error),
  });
}

export function client(port: number, operator: Certificate, options: Partial<ConnectOptions> = {}): AgentClient {
  return connectAgent({
    address: { host: "127.0.0.1", port, serverName: workspaceServerName(web) },
    credentials: () => operator,
    callTimeoutMs: 30_000,
    silenceMs: 30_000,
    ...options,
  });
}

export interface Wire {
  readonly port: number;
  readonly connections: () => number;
  /** Closes every connection that is open. */
  cut(): void;
  /** Keeps connections open but forwards nothing, like a lost peer. */
  freeze(frozen: boolean): void;
  close(): void;
}

/** A proxy between client and agent. */
export async function wireTo(port: number): Promise<Wire> {
  const sockets = new Set<Socket>();
  let frozen = false;
  let connections = 0;
  const server = createServer((inner) => {
    connections += 1;
    const outer = connect(port, "127.0.0.1");
    for (const [from, to] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      sockets.add(from);
      from.on("data", (data) => {
        if (!frozen) to.write(data);
      });
      from.on("error", () => undefined);
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  const destroyAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: typeof address === "object" && address ? address.port : 0,
    connections: () => connections,
    cut: destroyAll,
    freeze: (value) => {
      frozen = value;
    },
    close: () => {
      destroyAll();
      server.close();
    },
  };
}
