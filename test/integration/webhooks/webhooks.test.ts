/** Webhooks over HTTPS, with a real API server and a real Git server. */
import { describe, expect, test } from "bun:test";
import { connect } from "node:tls";

import { updates } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { gitServer } from "../stack/git-server.ts";
import { StackScene, testTimeoutMs } from "../stack/scene.ts";
import {
  counted,
  createReceiver,
  createSecret,
  post,
  pushBody,
  receiverReady,
  receiverUntil,
  secret,
  signed,
  stallOf,
  startReplica,
  type Replica,
} from "./scene.ts";

/** The Stack web follows the repository, and has deployed its first commit, which is returned. */
async function deployed(scene: StackScene, server: ReturnType<typeof gitServer>): Promise<string> {
  const commit = server.commit();
  await scene.stack("web", { projectRepo: server.url, branch: "main" });
  await scene.isReady("web", commit);
  return commit;
}

/** A Receiver that is ready. Returns its URL. */
async function receiving(scene: StackScene, replica: Replica, name = "hooks"): Promise<string> {
  await createSecret(scene, "hooks");
  await createReceiver(scene, name);
  const { status } = await receiverReady(scene, replica, name);
  return replica.url(status?.path ?? "");
}

test(
  "a push is deployed at once, and the Receiver reports it",
  async () => {
    using server = gitServer();
    await using scene = await StackScene.open("without operator");
    const replica = await startReplica(scene);
    const first = await deployed(scene, server);
    const url = await receiving(scene, replica);

    const second = server.commit();
    const body = pushBody(server.url);
    expect(await post(url, body, signed(body))).toBe(202);
    await scene.isReady("web", second);
    expect(scene.runs).toEqual([`up@${first}`, `up@${second}`]);
    const { status } = await receiverUntil(scene, "hooks", (each) => each.status?.lastDelivery !== undefined);
    expect(status?.lastDelivery).toMatchObject({ repository: server.url, stacks: 1 });
    expect(counted(replica.metrics)).toEqual({ accepted: 1 });

    // Other refs and repositories concern nobody, and a wrong secret is reported.
    const [side, elsewhere] = [pushBody(server.url, "refs/heads/side"), pushBody("https://git.example/other")];
    expect(await post(url, side, signed(side))).toBe(202);
    expect(await post(url, elsewhere, signed(elsewhere))).toBe(202);
    expect(await post(url, body, signed(body, "another secret of the sender"))).toBe(401);
    expect(counted(replica.metrics)).toEqual({ accepted: 1, notFollowed: 2, badSignature: 1 });
    scene.jump(61_000);
    const after = await receiverUntil(scene, "hooks", (each) => each.status?.lastRejection !== undefined);
    expect(after.status?.lastRejection?.reason).toBe("badSignature");
  },
  testTimeoutMs,
);

test(
  "webhooks are rejected until the secret is usable, and a new secret replaces the old one",
  async () => {
    await using scene = await StackScene.open("without operator");
    const replica = await startReplica(scene);
    await createReceiver(scene, "hooks");
    const { status } = await receiverUntil(scene, "hooks", (each) => stallOf(each) === "SecretMissing");
    const url = replica.url(status?.path ?? "");
    const body = pushBody("https://git.example/web");
    expect(await post(url, body, signed(body))).toBe(503);

    await createSecret(scene, "hooks", "short");
    scene.jump(70_000);
    await receiverUntil(scene, "hooks", (each) => stallOf(each) === "SecretTooShort");
    expect(await post(url, body, signed(body, "short"))).toBe(503);

    await createSecret(scene, "hooks");
    scene.jump(70_000);
    await receiverReady(scene, replica, "hooks");
    expect(await post(url, body, signed(body))).toBe(202);

    const rotated = "a new secret that nobody can guess";
    await createSecret(scene, "hooks", rotated);
    scene.jump(70_000);
    await waitFor(async () => (await post(url, body, signed(body, rotated))) === 202, { timeoutMs: 60_000 });
    expect(await post(url, body, signed(body, secret))).toBe(401);
  },
  testTimeoutMs,
);

describe("a replica on standby", () => {
  test(
    "forwards webhooks to the leader, and only to the one that the Lease names",
    async () => {
      using server = gitServer();
      await using scene = await StackScene.open("without operator");
      const leader = await startReplica(scene);
      await deployed(scene, server);
      const path = new URL(await receiving(scene, leader)).pathname;
      const address = { host: "127.0.0.1", port: leader.server.port, fingerprint: leader.server.fingerprint };
      let known = address;
      const standby = await startReplica(scene, { leader: () => known });
      await waitFor(() => standby.operator.stores.receivers.store.size === 1);

      const second = server.commit();
      const body = pushBody(server.url);
      expect(await post(standby.url(path), body, signed(body))).toBe(202);
      await scene.isReady("web", second);
      expect(await post(standby.url(path), body, signed(body, "wrong"))).toBe(401);
      expect([counted(standby.metrics), counted(leader.metrics)]).toEqual([
        { forwarded: 1, badSignature: 1 },
        { accepted: 1, badSignature: 1 },
      ]);

      known = { ...address, fingerprint: standby.server.fingerprint };
      expect(await post(standby.url(path), body, signed(body))).toBe(503);
      known = { ...address, port: standby.server.port, fingerprint: standby.server.fingerprint };
      expect(await post(standby.url(path), body, signed(body))).toBe(503);
      expect(counted(leader.metrics)).toEqual({ accepted: 1, badSignature: 1 });
    },
    testTimeoutMs,
  );
});

/** Sends the head of a request and one byte a second, until the server ends the connection. */
async function slowRequest(url: string): Promise<string> {
  const { hostname: host, port, pathname } = new URL(url);
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket = connect({ host, port: Number(port), rejectUnauthorized: false });
  let answer = "";
  socket.on("secureConnect", () => {
    socket.write(`POST ${pathname} HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 1000\r\n\r\n{`);
  });
  const timer = setInterval(() => socket.writable && socket.write(" "), 1000);
  socket.on("data", (chunk: Buffer) => {
    answer += chunk.toString();
    if (answer.includes("\r\n\r\n")) resolve(answer);
  });
  socket.on("close", () => resolve(answer));
  socket.on("error", () => resolve(answer));
  try {
    return await promise;
  } finally {
    clearInterval(timer);
    socket.destroy();
  }
}

test(
  "hostile requests change nothing, take no memory, and are all counted; polling and real webhooks continue",
  async () => {
    using server = gitServer();
    await using scene = await StackScene.open("without operator");
    const replica = await startReplica(scene);
    const first = await deployed(scene, server);
    const url = await receiving(scene, replica);
    const body = pushBody(server.url);
    const [unknown, broken] = [pushBody("https://git.example/other"), '{"ref":'];
    const huge = new Uint8Array(3 * 1024 * 1024).fill(32);
    const stream = (): ReadableStream => new Blob([huge]).stream();
    const attacks: readonly (() => Promise<number>)[] = [
      () => post(url, body, signed(body, "a guess of the attacker")),
      () => post(url, body, { ...signed(body), "x-gitea-signature": "" }),
      () => post(url, broken, signed(broken)),
      () => post(url, unknown, signed(unknown)),
      () => post(url, stream(), signed(body)),
      () => post(replica.url("/hooks/00000000000000000000000000000000"), stream(), signed(body)),
      () => post(replica.url("/"), body),
    ];
    const startSlow = async (): Promise<readonly Promise<string>[]> => {
      const before = replica.started();
      const requests = Array.from({ length: 4 }, () => slowRequest(url));
      await waitFor(() => replica.started() === before + requests.length);
      return requests;
    };
    const late = await startSlow();
    scene.jump(11_000);
    for (const answer of await Promise.all(late)) expect(answer).toStartWith("HTTP/1.1 408");

    // These hold slots, and must make room if all are in use.
    const slow = await startSlow();
    const total = 3000;
    let sent = 0;
    let failed = 0;
    const before = process.memoryUsage.rss();
    const attack = async (): Promise<void> => {
      while (sent < total) {
        const next = attacks[sent++ % attacks.length];
        await next?.().catch(() => failed++);
      }
    };
    await Promise.all(Array.from({ length: 16 }, attack));
    scene.jump(11_000);
    for (const answer of await Promise.all(slow)) expect(answer).toMatch(/^HTTP\/1\.1 (408|503)/);
    Bun.gc(true);
    const grown = process.memoryUsage.rss() - before;
    expect(grown).toBeLessThan(200 * 1024 * 1024);

    const results = counted(replica.metrics);
    expect(results["tooSlow"]).toBeGreaterThanOrEqual(late.length);
    expect(results["accepted"]).toBeUndefined();
    const all = Object.values(results).reduce((sum, count) => sum + count, 0);
    expect(all).toBe(total + late.length + slow.length);
    console.log(
      `    ${JSON.stringify(results)}, connections that broke: ${failed}, ${Math.round(grown / 2 ** 20)} MiB`,
    );
    expect(await scene.client.list(updates, { namespace: scene.namespace })).toMatchObject({ items: [{}] });
    expect(scene.runs).toEqual([`up@${first}`]);

    const second = server.commit();
    await waitFor(async () => (await post(url, body, signed(body))) === 202, { timeoutMs: 60_000 });
    await scene.isReady("web", second);
    expect(scene.runs).toEqual([`up@${first}`, `up@${second}`]);
  },
  testTimeoutMs * 2,
);
