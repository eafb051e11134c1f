import { describe, expect, spyOn, test } from "bun:test";
import { builtin } from "../client/builtin.ts";
import type { Client } from "../client/client.ts";
import { staticCredentials } from "../client/connection/credentials.ts";
import { connectFenced } from "./fence.ts";
import type { HttpRequest } from "../client/requests/http.ts";
import { HeldTerm, NotLeaderError, soleLeader, stopwatch, type Leadership } from "./leadership.ts";
import { manualClock, type ManualClock } from "../manual-clock.ts";

const ref = { namespace: "ns", name: "x" };
const { apiVersion, kind } = builtin.configMaps;
const configMap = { apiVersion, kind, metadata: ref };

const writes: Readonly<Record<string, (client: Client, signal?: AbortSignal) => Promise<unknown>>> = {
  create: (client, signal) => client.create(builtin.configMaps, configMap, { ...(signal && { signal }) }),
  apply: (client, signal) =>
    client.apply(builtin.configMaps, configMap, { fieldManager: "m", ...(signal && { signal }) }),
  patch: (client, signal) =>
    client.patch(builtin.configMaps, ref, { patch: { type: "merge", body: {} }, ...(signal && { signal }) }),
  delete: (client, signal) => client.delete(builtin.configMaps, ref, { uid: "u", ...(signal && { signal }) }),
};

interface Setting {
  readonly clock: ManualClock;
  readonly term: HeldTerm;
  readonly client: Client;
  readonly sent: string[];
  /** The API server's response; success by default. */
  answer: (request: HttpRequest) => Promise<Response>;
}

/** A leader that renewed now, may have writes in flight for 10 s and may start writes for 9 s. */
function leading(): Setting {
  const clock = manualClock(0);
  const watch = stopwatch(clock);
  const term = new HeldTerm({ epoch: 1, writeMs: 10_000, inFlightMs: 1000, watch }, watch.mark());
  const leadership: Leadership = {
    term,
    isCertain: () => term.isCertain(),
    guard: (operation, write) => term.guard(operation, write),
  };
  const sent: string[] = [];
  const transport = async (request: HttpRequest): Promise<Response> => {
    sent.push(request.method);
    return await setting.answer(request);
  };
  const client = connectFenced({
    credentials: staticCredentials({ server: "https://api.test", tls: {} }),
    leadership,
    options: { transport, clock, random: () => 0 },
  });
  const setting: Setting = { clock, term, client, sent, answer: async () => Response.json(configMap) };
  return setting;
}

const never = (request: HttpRequest): Promise<Response> =>
  new Promise((_, reject) => {
    request.signal.addEventListener("abort", () => reject(new Error("aborted")));
  });

for (const [name, write] of Object.entries(writes)) {
  describe(name, () => {
    test("is sent while leading is certain", async () => {
      const { client, sent } = leading();
      await write(client);
      expect(sent.length).toBe(1);
    });

    test("is rejected without a request when leading is no longer certain", async () => {
      const { clock, client, sent } = leading();
      await clock.advance(9000);
      const error: unknown = await write(client).catch((error: unknown) => error);
      expect(error).toBeInstanceOf(NotLeaderError);
      expect(String(error)).toMatch(/ConfigMap ns\/x: rejected, not leading/);
      expect(sent).toEqual([]);
    });

    test("is aborted when the term ends", async () => {
      const setting = leading();
      setting.answer = never;
      const outcome = write(setting.client).catch((error: unknown) => error);
      await setting.clock.advance(100);
      expect(setting.term.inFlight).toBe(1);
      setting.term.end("lost");
      expect(await outcome).toBeInstanceOf(NotLeaderError);
      expect([setting.term.inFlight, setting.term.settlingMs()]).toEqual([0, 1000]);
    });

    test("is aborted when its caller aborts", async () => {
      const setting = leading();
      setting.answer = never;
      const stop = new AbortController();
      const outcome = write(setting.client, stop.signal).catch((error: unknown) => error);
      await setting.clock.advance(100);
      stop.abort(new Error("enough"));
      expect(String(await outcome)).toBe("Error: enough");
    });
  });
}

test("a second attempt is rejected even if the first was allowed", async () => {
  const setting = leading();
  setting.answer = async () => Response.json({ code: 503 }, { status: 503, headers: { "retry-after": "2" } });
  await setting.clock.advance(8000);
  const outcome = writes["apply"]?.(setting.client).catch((error: unknown) => error);
  await setting.clock.advance(1900);
  expect(setting.sent).toEqual(["PATCH"]);
  // The timer of the attempt fires before the one that ends the term, as it may after the process was paused.
  await setting.clock.advance(200);
  expect(await outcome).toBeInstanceOf(NotLeaderError);
  expect(setting.sent).toEqual(["PATCH"]);
});

test("any response of the API server settles a write", async () => {
  const setting = leading();
  setting.answer = async () => Response.json({ code: 409, reason: "Conflict" }, { status: 409 });
  expect(writes["create"]?.(setting.client)).rejects.toThrow("409 Conflict");
  await setting.clock.advance(1);
  expect(setting.term.settlingMs()).toBe(0);
});

test("reads are never rejected", async () => {
  const { clock, client, sent } = leading();
  await clock.advance(60_000);
  await client.get(builtin.configMaps, ref);
  await client.find(builtin.configMaps, ref);
  await client.list(builtin.configMaps);
  expect(sent).toEqual(["GET", "GET", "GET"]);
});

test("finished writes leave no listener on the term's signal", async () => {
  const { client, term } = leading();
  const [added, removed] = [spyOn(term.signal, "addEventListener"), spyOn(term.signal, "removeEventListener")];
  for (const write of Object.values(writes)) await write(client);
  expect([added.mock.calls.length, removed.mock.calls.length]).toEqual([4, 4]);
});

test("a sole leader leads while it runs", async () => {
  const elector = soleLeader();
  const write = async (): Promise<string> => "written";
  expect(elector.guard("create", write)).rejects.toBeInstanceOf(NotLeaderError);
  let signal: AbortSignal | undefined;
  await elector.run(new AbortController().signal, async (term) => {
    ({ signal } = term);
    expect([elector.isCertain(), await elector.guard("create", write)]).toEqual([true, "written"]);
  });
  expect([signal?.aborted, elector.isCertain()]).toEqual([true, false]);
});
