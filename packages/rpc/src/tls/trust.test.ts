/** Who may connect to whom, with real TLS on loopback: Bun itself must reject these connections. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { workspaceServerName } from "./identity.ts";
import {
  createAuthorities,
  issueOperatorCertificate,
  issueWorkspaceCertificate,
  rotateAuthorities,
  trustBundle,
} from "./pki.ts";
import type { AgentServer } from "../server.ts";
import { certificates, client, startAgent, web, type Pair } from "../testing/fake-agent.ts";
import { splitBundle } from "./tls.ts";

let ours: Pair;
let foreign: Pair;
let agent: AgentServer;

beforeAll(async () => {
  ours = await certificates();
  foreign = await certificates();
  agent = startAgent(ours.workspace, {});
});

afterAll(async () => {
  await agent.stop(true);
});

async function outcome(call: ReturnType<typeof client>): Promise<string> {
  const reply = await call.info();
  return reply.ok ? "answered" : reply.error.code;
}

async function isRejected(request: Promise<Response>): Promise<boolean> {
  return await request.then(
    () => false,
    () => true,
  );
}

describe("the agent", () => {
  test("answers the operator", async () => {
    expect(await outcome(client(agent.port, ours.operator))).toBe("answered");
  });

  test("rejects a caller without a certificate", async () => {
    const anonymous = fetch(`https://127.0.0.1:${agent.port}/v1/info`, {
      method: "POST",
      body: "{}",
      tls: { ca: splitBundle(ours.operator.ca), serverName: workspaceServerName(web) },
    });
    expect(await isRejected(anonymous)).toBe(true);
  });

  test("rejects a caller whose certificate another CA signed", async () => {
    const stranger = { ...foreign.operator, ca: ours.operator.ca };
    expect(await outcome(client(agent.port, stranger))).toBe("unreachable");
  });

  test("rejects a workspace that calls with its own certificate", async () => {
    expect(await outcome(client(agent.port, ours.workspace))).toBe("unreachable");
  });

  test("rejects an expired certificate", async () => {
    const longAgo = new Date(Date.now() - 60 * 24 * 3_600_000);
    const authorities = await createAuthorities(longAgo);
    const expired = await issueOperatorCertificate(authorities, longAgo);
    const server = startAgent({ ...ours.workspace, ca: trustBundle(authorities) }, {});
    const caller = { ...expired, ca: ours.operator.ca };
    expect(await outcome(client(server.port, caller))).toBe("unreachable");
    await server.stop(true);
  });

  test("does not respond without TLS", async () => {
    const plain = fetch(`http://127.0.0.1:${agent.port}/v1/info`, { method: "POST", body: "{}" });
    expect(await isRejected(plain)).toBe(true);
  });
});

describe("the operator", () => {
  test("rejects a workspace of another name at the address that it dials", async () => {
    const other = workspaceServerName({ namespace: "prod", name: "db" });
    const address = { host: "127.0.0.1", port: agent.port, serverName: other };
    expect(await outcome(client(agent.port, ours.operator, { address }))).toBe("untrusted");
  });

  test("rejects the same name in another namespace", async () => {
    const other = workspaceServerName({ namespace: "dev", name: "web" });
    const address = { host: "127.0.0.1", port: agent.port, serverName: other };
    expect(await outcome(client(agent.port, ours.operator, { address }))).toBe("untrusted");
  });

  test("rejects a wrong name right after a correct one: connections are not shared between names", async () => {
    const address = { host: "127.0.0.1", port: agent.port, serverName: "db.prod.workspace.auto.pulumi.com" };
    for (let round = 0; round < 3; round += 1) {
      expect(await outcome(client(agent.port, ours.operator))).toBe("answered");
      expect(await outcome(client(agent.port, ours.operator, { address }))).toBe("untrusted");
    }
  });

  test("rejects an agent whose certificate another CA signed", async () => {
    const rogue = startAgent({ ...foreign.workspace, ca: ours.workspace.ca }, {});
    expect(await outcome(client(rogue.port, ours.operator))).toBe("untrusted");
    await rogue.stop(true);
  });

  test("rejects an agent that has only a client certificate", async () => {
    const rogue = startAgent(ours.operator, {});
    const address = { host: "127.0.0.1", port: rogue.port, serverName: "operator.workspace.auto.pulumi.com" };
    expect(await outcome(client(rogue.port, ours.operator, { address }))).toBe("untrusted");
    await rogue.stop(true);
  });

  test("reports each rejected certificate, and no other failure, so that the CA can be read again", async () => {
    const rogue = startAgent({ ...foreign.workspace, ca: ours.workspace.ca }, {});
    let rejections = 0;
    const onUntrusted = (): number => (rejections += 1);
    await outcome(client(agent.port, ours.operator, { onUntrusted }));
    await outcome(client(1, ours.operator, { onUntrusted }));
    expect(rejections).toBe(0);
    await outcome(client(rogue.port, ours.operator, { onUntrusted }));
    const caller = client(rogue.port, ours.operator, { onUntrusted });
    for await (const { type } of caller.watch({ runId: "run", fromSeq: 1 })) if (type === "reconnecting") break;
    expect(rejections).toBe(2);
    await rogue.stop(true);
  });

  test("reports an agent that does not listen as unreachable", async () => {
    expect(await outcome(client(1, ours.operator))).toBe("unreachable");
  });
});

describe("rotation", () => {
  test("both sides can connect at each step, in whatever order they receive the new CA", async () => {
    const start = new Date(Date.now() - 250 * 24 * 3_600_000);
    const now = new Date();
    const before = await createAuthorities(start);
    const during = await rotateAuthorities(before, new Date(now.getTime() - 3 * 3_600_000));
    const after = during.slice(1);

    const oldAgent = await issueWorkspaceCertificate(before, web, now);
    const newAgent = await issueWorkspaceCertificate(during, web, now);
    const oldOperator = await issueOperatorCertificate(before, now);
    const newOperator = await issueOperatorCertificate(during, now);
    const trusting = (certificate: typeof oldAgent) => ({ ...certificate, ca: trustBundle(during) });
    expect(splitBundle(newAgent.ca)).toHaveLength(2);

    for (const [server, caller] of [
      [oldAgent, oldOperator],
      [trusting(oldAgent), oldOperator],
      [trusting(oldAgent), newOperator],
      [newAgent, trusting(oldOperator)],
      [newAgent, newOperator],
      [
        { ...newAgent, ca: trustBundle(after) },
        { ...newOperator, ca: trustBundle(after) },
      ],
    ] as const) {
      const listening = startAgent(server, {});
      expect(await outcome(client(listening.port, caller))).toBe("answered");
      await listening.stop(true);
    }
  });

  test("an agent renews its certificate without closing its port, and no longer trusts the old CA", async () => {
    const next = await certificates();
    const server = startAgent(ours.workspace, {});
    expect(await outcome(client(server.port, ours.operator))).toBe("answered");
    server.renew(next.workspace);
    expect(await outcome(client(server.port, next.operator))).toBe("answered");
    const stale = { ...ours.operator, ca: next.operator.ca };
    expect(await outcome(client(server.port, stale))).toBe("unreachable");
    await server.stop(true);
  });
});
