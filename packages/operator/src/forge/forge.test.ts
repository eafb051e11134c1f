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
  });

  test("only GitHub has Apps", async () => {
    expect(await resolve(appKeys, "GitLab")).toMatchObject({ kind: "invalid" });
  });

  test.each([[{}], [{ username: "u" }], [{ appID: "1" }], [{ token: "" }]])("are not in %p", async (values) => {
    const access = await resolve(values);
    expect(access).toMatchObject({ kind: "invalid", message: expect.stringContaining("Secret forge") as string });
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
  const run = (limits: ForgeLimits, result: Result, line = "a") =>
    limits.run(
      line,
      () => Promise.resolve(result),
      ({ error, ...rest }) => (error ? { error, ...rest, at: 0 } : undefined),
    );

  test("a forge rests longer after each failure, and is called again after a success", async () => {
    const limits = new ForgeLimits();
    const rests: number[] = [];
    for (let failures = 0; failures < 10; failures++) {
      await run(limits, { error: "unavailable" });
      rests.push(limits.stateOf("a").restUntil);
    }
    expect(rests.map((ms) => Math.round(ms / 1000)).slice(0, 3)).toEqual([1, 2, 4]);
    expect(rests.at(-1)).toBeLessThan(67_000);
    expect(limits.stateOf("b").restUntil).toBe(0);
    await run(limits, {});
    expect(limits.stateOf("a")).toEqual({ isBusy: false, restUntil: 0 });
  });

  test("a forge rests as long as it wants", async () => {
    const limits = new ForgeLimits();
    await run(limits, { error: "rateLimited", retryAfterMs: 600_000 });
    expect(limits.stateOf("a").restUntil).toBeGreaterThan(500_000);
  });

  test("a rejected request is no reason to rest", async () => {
    const limits = new ForgeLimits();
    await run(limits, { error: "unauthorized" });
    expect(limits.stateOf("a").restUntil).toBe(0);
  });

  test("only a few requests run at a time", async () => {
    const limits = new ForgeLimits();
    const { promise, resolve: end } = Promise.withResolvers<Result>();
    const open = [1, 2].map(() =>
      limits.run(
        "a",
        () => promise,
        () => undefined,
      ),
    );
    expect(limits.stateOf("a").isBusy).toBe(true);
    expect(limits.stateOf("b").isBusy).toBe(false);
    end({});
    await Promise.all(open);
    expect(limits.stateOf("a").isBusy).toBe(false);
  });
});
