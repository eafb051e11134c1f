/** After any fault between a controller and a real API server, its store is soon in sync again, and a reconcile follows. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { builtin, inClusterCredentials, manualClock } from "@pko/kube";
import { startApiServer, waitFor, type ProxiedRequest } from "@pko/testkit";

import { createRobot } from "./robot.ts";
import { setStage } from "./reflected.ts";

// The first test that needs the API server waits until it has started, which takes long on a busy machine.
setDefaultTimeout(180_000);

const isWatch = ({ verb }: { verb: string }): boolean => verb === "watch";
/** A repair reads the objects that have changed one by one. */
const isFullList = ({ verb, query }: ProxiedRequest): boolean => verb === "list" && !query.has("fieldSelector");

describe("the store is in sync again, and a reconcile follows, after", () => {
  test.concurrent("a watch that froze", async () => {
    await using stage = await setStage();
    await stage.proxy.nextRequest(isWatch);
    stage.proxy.freezeOpen();
    await stage.put("changing");
    await stage.recovers("changing");
  });

  test.concurrent("a network outage that froze old and new connections", async () => {
    await using stage = await setStage();
    stage.proxy.freeze();
    await stage.put("new");
    await stage.remove("changing");
    await waitFor(() => !stage.reflected.healthy);
    stage.proxy.thaw();
    await stage.recovers("-changing", "new");
    await waitFor(() => stage.reflected.healthy);
  });

  test.concurrent("a watch whose connection was cut", async () => {
    await using stage = await setStage();
    stage.proxy.cut();
    await stage.remove("changing");
    await stage.recovers("-changing");
  });

  test.concurrent("a watch without a response", async () => {
    await using stage = await setStage();
    let frozen = 0;
    stage.proxy.on((request) => (isWatch(request) && ++frozen <= 2 ? { freeze: "before" } : undefined));
    await waitFor(() => frozen >= 1);
    await stage.put("changing");
    await stage.recovers("changing");
  });

  test.concurrent("410, with a deletion without an event", async () => {
    await using stage = await setStage();
    stage.proxy.onEvent(() => "drop");
    let expired = 0;
    stage.proxy.on((request) => (isWatch(request) && ++expired <= 1 ? { status: 410 } : undefined));
    await stage.remove("changing");
    await stage.recovers("-changing");
  });

  const drops = { created: "new", changed: "changing", deleted: "-changing" } as const;
  for (const [what, expected] of Object.entries(drops)) {
    test.concurrent(`an event that was lost: an object was ${what}`, async () => {
      await using stage = await setStage();
      let dropped = 0;
      stage.proxy.onEvent(({ object }) => {
        if (object.metadata.name !== expected.replace("-", "")) return "pass";
        dropped++;
        return "drop";
      });
      // On a busy machine, a comparison could find the difference before the watch reports it.
      stage.proxy.on(({ verb }) => (verb === "list" && dropped === 0 ? { status: 503 } : undefined));
      await (what === "deleted" ? stage.remove("changing") : stage.put(expected));
      await stage.put("later");
      await stage.recovers(expected, "later");
      expect(dropped).toBeGreaterThan(0);
    });
  }

  for (const [what, expected] of Object.entries(drops)) {
    test.concurrent(
      `an event that was lost in a large store, which reads only changes: an object was ${what}`,
      async () => {
        // A busy machine may respond late. That the first request is enough is tested with a manual clock.
        const timing = { largeSize: 0, watchMinMs: 20_000, watchMaxMs: 20_000, answerMs: 30_000 };
        await using stage = await setStage({ timing });
        stage.proxy.forget();
        let dropped = 0;
        let changes = 0;
        stage.proxy.onEvent(async ({ object: { kind, metadata } }) => {
          if (metadata.name !== expected.replace("-", "")) return "pass";
          // The changes are read as metadata. If they arrived first, the repair could replace the watch before it loses the event.
          if (kind === "PartialObjectMetadata") {
            await waitFor(() => dropped > 0);
            changes++;
            return "pass";
          }
          dropped++;
          return "drop";
        });
        await (what === "deleted" ? stage.remove("changing") : stage.put(expected));
        await stage.put("later");
        await stage.recovers(expected, "later");
        expect(dropped).toBeGreaterThan(0);
        // Maybe by a comparison that had begun before. An API server that is stalled ends the watch of the changes early: then everything is compared.
        const isCompared = stage.proxy.requests.some(isFullList);
        if (!isCompared) expect(changes).toBeGreaterThan(0);
      },
    );
  }

  test.concurrent("many 429 responses, without flooding the server", async () => {
    await using stage = await setStage();
    const removeRule = stage.proxy.on(() => ({ status: 429, retryAfterSeconds: 1 }));
    stage.proxy.cut();
    stage.proxy.forget();
    const since = performance.now();
    await stage.put("changing");
    await waitFor(() => !stage.reflected.healthy);
    const seconds = (performance.now() - since) / 1000;
    expect(stage.proxy.requests.length).toBeLessThan(10 + 4 * seconds);
    removeRule();
    await stage.recovers("changing");
  });

  test.concurrent("many 500 responses and broken connections", async () => {
    await using stage = await setStage();
    const removeRule = stage.proxy.on(({ sequence }) => (sequence % 2 === 0 ? { status: 500 } : { cut: "before" }));
    stage.proxy.cut();
    await stage.put("changing");
    await waitFor(() => !stage.reflected.healthy);
    removeRule();
    await stage.recovers("changing");
  });

  test.concurrent("a restart of the API server, which expires the watch", async () => {
    const server = await startApiServer();
    try {
      await using stage = await setStage({ server });
      await server.kill();
      await waitFor(() => !stage.reflected.healthy);
      await server.restart();
      await Promise.all([stage.put("changing"), stage.remove("kept")]);
      await stage.recovers("-kept", "changing");
    } finally {
      await server.stop();
    }
  });

  test.concurrent("its token became invalid and a new one was in the file", async () => {
    const folder = await mkdtemp(join(tmpdir(), "pko-service-account-"));
    try {
      await using stage = await setStage({
        async credentials({ proxy, namespace, admin }) {
          await writeFile(join(folder, "ca.crt"), proxy.ca);
          await writeFile(join(folder, "namespace"), namespace);
          await writeFile(join(folder, "token"), await createRobot(admin, namespace, "robot"));
          const { hostname, port } = new URL(proxy.url);
          const environment = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port };
          // The clock stands still, so the file is read again only after a 401 response.
          return await inClusterCredentials({ folder, environment, clock: manualClock() });
        },
      });
      const { namespace, server } = stage;
      await writeFile(join(folder, "token"), await createRobot(server.client, namespace, "robot-2"));
      await server.client.delete(builtin.serviceAccounts, { name: "robot", namespace });
      // The API server caches tokens for ten seconds, so the deleted service account's token stays valid for a while.
      await waitFor(() => stage.proxy.requests.some(({ status }) => status === 401), { timeoutMs: 30_000 });
      await stage.put("changing");
      await stage.recovers("changing");
      // A slow response may be reported, but a rejected token must not be.
      expect(stage.errors.filter((error) => !/deadline/i.test(error))).toEqual([]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
