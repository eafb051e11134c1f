import { describe, expect, test } from "bun:test";
import type { ForgeErrorKind, ForgeType } from "@pko/forge";

import type { GitHubApp, GitHubAppTokens } from "../sources/github-app.ts";
import { forgeCredentials, secretValues, type SecretValues } from "./credentials.ts";
import { ForgeLimits } from "./forge-limits.ts";

const appKeys = { appID: "1\n", installationID: "2", privateKey: "key" };

function resolve(values: SecretValues, type: ForgeType = "GitHub", githubApps: GitHubAppTokens = exchange()) {
  const target = { type, url: "https://api.example", repository: "a/b" };
  return forgeCredentials("forge", values, { target, githubApps, signal: new AbortController().signal });
}

function exchange(seen: GitHubApp[] = []): GitHubAppTokens {
  return {
    async tokenFor(app) {
      seen.push(app);
      return { ok: true, token: "installation" };
    },
  };
}

describe("credentials", () => {
  test.each([
    ["a token", { token: "t\n" }, { kind: "token", token: "t" }],
    ["a user", { username: "u\n", password: " p \n" }, { kind: "basic", username: "u", password: " p " }],
    ["a token with a CA", { token: "t", "ca.crt": "PEM" }, { kind: "token", token: "t", ca: "PEM" }],
    ["a GitHub App", appKeys, { kind: "token", token: "installation" }],
  ])("of %s", async (_, values, credentials) => {
    expect(await resolve(values)).toEqual({ kind: "found", credentials } as never);
  });

  test("a GitHub App is exchanged at the API of the target", async () => {
    const seen: GitHubApp[] = [];
    await resolve(appKeys, "GitHub", exchange(seen));
    expect(seen).toMatchObject([{ appId: "1", installationId: "2", api: "https://api.example" }]);
  });

  test("an App that is refused is reported", async () => {
    const refusing: GitHubAppTokens = { tokenFor: async () => ({ ok: false, message: "no" }) };
    expect(await resolve(appKeys, "GitHub", refusing)).toEqual({ kind: "refused", message: "no" });
    const down: GitHubAppTokens = { tokenFor: async () => ({ ok: false, message: "down", isTemporary: true }) };
    expect(await resolve(appKeys, "GitHub", down)).toEqual({ kind: "unavailable", message: "down" });
  });

  test("only GitHub has Apps", async () => {
    expect(await resolve(appKeys, "GitLab")).toMatchObject({ kind: "invalid" });
  });

  test.each([[{}], [{ username: "u" }], [{ appID: "1" }], [{ token: "" }]])("are not in %p", async (values) => {
    const access = await resolve(values);
    expect(access).toMatchObject({ kind: "invalid", message: expect.stringContaining("Secret forge") as string });
  });

  test.each([
    ["a line break", "a\nb"],
    ["a space", "a b"],
    ["a control character", "a\u0000b"],
    ["a letter that is not ASCII", "ä"],
    ["nothing but white space", " \n"],
  ])("with %s in the token are invalid, and not shown", async (_, token) => {
    expect(await resolve({ token })).toEqual({
      kind: "invalid",
      message:
        "The key token of Secret forge contains characters that a token cannot contain, such as a space or a line break; correct it.",
    });
  });

  test("are decoded", () => {
    expect(secretValues({ token: Buffer.from("a secret").toString("base64") })).toEqual({ token: "a secret" });
  });
});

describe("limits", () => {
  interface Result {
    readonly error?: ForgeErrorKind;
    readonly retryAfterMs?: number;
  }
  const failureIn = ({ error, ...rest }: Result) => (error ? { error, ...rest, at: 0 } : undefined);
  const run = (limits: ForgeLimits, result: Result, line = "a") =>
    limits.run({ line, key: "team/one", send: () => Promise.resolve(result), failureIn });
  const restOf = (limits: ForgeLimits, line = "a"): number => limits.stateOf(line, "team/one").restUntil;

  /** Keys are woken in this order. A request ends when its function is called. */
  function opened() {
    const woken: string[] = [];
    const limits = new ForgeLimits((key) => woken.push(key));
    const ends = new Map<string, (result: Result) => void>();
    const start = (key: string, line = "a") => {
      const { promise, resolve: end } = Promise.withResolvers<Result>();
      ends.set(key, end);
      return limits.run({ line, key, send: () => promise, failureIn });
    };
    const end = async (key: string): Promise<void> => {
      ends.get(key)?.({});
      await Bun.sleep(0);
    };
    return { limits, woken, start, end };
  }

  test("a forge rests longer after each failure, and is called again after a success", async () => {
    const { limits } = opened();
    const rests: number[] = [];
    for (let failures = 0; failures < 10; failures++) {
      await run(limits, { error: "unavailable" });
      rests.push(restOf(limits));
    }
    expect(rests.map((ms) => Math.round(ms / 1000)).slice(0, 3)).toEqual([1, 2, 4]);
    expect(rests.at(-1)).toBeLessThan(67_000);
    expect(restOf(limits, "b")).toBe(0);
    await run(limits, {});
    expect(limits.stateOf("a", "team/one")).toEqual({ isBusy: false, restUntil: 0 });
  });

  test("a forge rests as long as it wants", async () => {
    const { limits } = opened();
    await run(limits, { error: "rateLimited", retryAfterMs: 600_000 });
    expect(restOf(limits)).toBeGreaterThan(500_000);
  });

  describe("when there are many forges", () => {
    const maxKnown = 1000;
    const failAt = (limits: ForgeLimits, line: string, failure: { at: number; retryAfterMs?: number }) =>
      limits.run({
        line,
        key: "team/one",
        send: () => Promise.resolve({ error: "unavailable", ...failure } as const),
        failureIn: (result) => result,
      });
    /** All of them rest for a second or two from 0 on. */
    const fill = async (limits: ForgeLimits, count: number, retryAfterMs = 0): Promise<void> => {
      for (let line = 0; line < count; line++) await failAt(limits, `team ${line}`, { at: 0, retryAfterMs });
    };
    /** The rest after another failure shows whether the first one is known. */
    const isKnown = async (limits: ForgeLimits, line: string): Promise<boolean> => {
      await failAt(limits, line, { at: 0 });
      return restOf(limits, line) > 1500;
    };

    test("those that rest no longer are forgotten, and not before there are many", async () => {
      const { limits } = opened();
      await fill(limits, maxKnown - 2);
      await failAt(limits, "team last", { at: 10_000 });
      expect(restOf(limits, "team 0")).toBeGreaterThan(0);
      await failAt(limits, "team one more", { at: 10_000 });
      await failAt(limits, "team two more", { at: 10_000 });
      expect(restOf(limits, "team 0")).toBe(0);
      expect(restOf(limits, "team 500")).toBe(0);
      expect(await isKnown(limits, "team 0")).toBe(false);
      expect(restOf(limits, "team last")).toBeGreaterThan(10_000);
    });

    test("one that is being called is kept", async () => {
      const { limits, start } = opened();
      await failAt(limits, "team called", { at: 0 });
      for (const key of ["one", "two"]) void start(key, "team called");
      await fill(limits, maxKnown);
      await failAt(limits, "team last", { at: 10_000 });
      expect(limits.stateOf("team called", "three").isBusy).toBe(true);
    });

    test("one that somebody waits for is kept", async () => {
      const { limits } = opened();
      await failAt(limits, "team wanted", { at: 0 });
      limits.wait("team wanted", "first");
      await fill(limits, maxKnown);
      await failAt(limits, "team last", { at: 10_000 });
      expect(limits.stateOf("team wanted", "second").isBusy).toBe(true);
    });

    test("of those that rest, the oldest ones of the namespace with the most are forgotten", async () => {
      const { limits } = opened();
      await failAt(limits, "other forge", { at: 0, retryAfterMs: 3_600_000 });
      await fill(limits, maxKnown + 200, 3_600_000);
      const known = Array.from({ length: maxKnown + 200 }, (_, line) => restOf(limits, `team ${line}`) > 0);
      expect(known.filter(Boolean).length).toBeLessThanOrEqual(maxKnown);
      expect(known.filter(Boolean).length).toBeGreaterThan(maxKnown - 10);
      expect([known[0], known.at(-1)]).toEqual([false, true]);
      expect(restOf(limits, "other forge")).toBeGreaterThan(0);
    });
  });

  test("new credentials end the rest of a forge, and wake those that wait for its end", async () => {
    const { limits, woken } = opened();
    await run(limits, { error: "rateLimited", retryAfterMs: 3_600_000 });
    for (const key of ["one", "two"]) limits.rest("a", key);
    limits.rest("b", "three");
    limits.leave("two");
    limits.endRest("a");
    expect(woken).toEqual(["one"]);
    expect(restOf(limits)).toBe(0);
    limits.endRest("a");
    expect(woken).toEqual(["one"]);
    limits.endRest("unknown");
  });

  test("a request that succeeds meanwhile ends the rest of a forge, and wakes those that wait for its end", async () => {
    const { limits, woken, start, end } = opened();
    const request = start("slow");
    await run(limits, { error: "rateLimited", retryAfterMs: 3_600_000 });
    limits.rest("a", "one");
    await end("slow");
    await request;
    expect(restOf(limits)).toBe(0);
    expect(woken).toEqual(["one"]);
  });

  test("a rejected request is no reason to rest", async () => {
    const { limits } = opened();
    await run(limits, { error: "unauthorized" });
    expect(restOf(limits)).toBe(0);
  });

  test("only a few requests run at a time, also of passes that began together", async () => {
    const { limits, start, end } = opened();
    const keys = ["one", "two", "three"];
    expect(keys.map((key) => limits.stateOf("a", key).isBusy)).toEqual([false, false, false]);
    const [one, two, three] = keys.map((key) => start(key));
    expect(await three).toBe("busy");
    expect(limits.stateOf("b", "three").isBusy).toBe(false);
    await end("one");
    await end("two");
    expect(await Promise.all([one, two])).toEqual([{}, {}]);
    expect(limits.stateOf("a", "three").isBusy).toBe(false);
  });

  test("those that wait are woken in order, and nobody overtakes them", async () => {
    const { limits, woken, start, end } = opened();
    void start("one");
    void start("two");
    for (const key of ["three", "four", "five"]) limits.wait("a", key);
    expect(woken).toEqual([]);
    await end("one");
    expect(woken).toEqual(["three"]);
    expect(await start("late")).toBe("busy");
    void start("three");
    expect(woken).toEqual(["three"]);
    await end("two");
    expect(woken).toEqual(["three", "four"]);
    // It was woken, and had nothing to send.
    limits.leave("four");
    expect(woken).toEqual(["three", "four", "five"]);
  });

  test("one that has to wait again keeps its place", async () => {
    const { limits, woken, start, end } = opened();
    void start("one");
    void start("two");
    limits.wait("a", "three");
    limits.wait("a", "four");
    await end("one");
    limits.wait("a", "three");
    expect(woken).toEqual(["three", "three"]);
  });

  test("one that waits for another forge has left the first one", async () => {
    const { limits, woken, start, end } = opened();
    for (const key of ["one", "two"]) void start(key);
    for (const key of ["three", "four"]) void start(key, "b");
    limits.wait("a", "moved");
    limits.wait("b", "moved");
    await end("one");
    expect(woken).toEqual([]);
    await end("three");
    expect(woken).toEqual(["moved"]);
  });
});
