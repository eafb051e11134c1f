/** Stacks on a fake Pulumi Cloud: all ways to sign in, environments, permalinks, conflicts and interrupted runs. */
import { beforeAll, describe, expect, test } from "bun:test";

import { serveCloud, waitFor, type Cloud, type Issuer } from "@pko/testkit";

import {
  applyTo,
  at,
  eventsJson,
  fromSecret,
  getStack,
  hasReason,
  isReady,
  killPod,
  kubectl,
  listUpdates,
  literal,
  machineAddress,
  newProgram,
  newSecret,
  newStackWithoutBackend,
  requestReconcile,
  stackUntil,
  untilEvents,
  useScene,
} from "../harness.ts";

const slow = 300_000;
/** The operator's default. */
const tokenSeconds = 60;
const canary = "canary-secret-value";

const scene = useScene("cloud", { operator: { flags: [`--oidc-expiration-seconds=${tokenSeconds}`] } });
let cloud: Cloud;
let issuer: Issuer;
let token: string;

function cloudStack(name: string, { envRefs = {}, ...spec }: { envRefs?: object; [field: string]: unknown }): object {
  return newStackWithoutBackend(name, {
    programRef: { name: "web" },
    ...spec,
    envRefs: { PULUMI_CONSOLE_DOMAIN: literal("console.example.com"), ...envRefs },
  });
}

/** Trusts the keys with which the cluster signs service account tokens. */
async function clusterAsIssuer(): Promise<Issuer> {
  const discovery = JSON.parse(await kubectl(["get", "--raw", "/.well-known/openid-configuration"])) as {
    issuer: string;
  };
  const keys = JSON.parse(await kubectl(["get", "--raw", "/openid/v1/jwks"])) as Issuer["keys"];
  const subject = new RegExp(`^system:serviceaccount:${scene.namespace}:pulumi$`);
  const policies = [
    { kind: "organization", subject },
    { kind: "team", name: "platform", subject },
    { kind: "personal", name: "jane", subject },
  ] as const;
  return { url: discovery.issuer, keys, policies };
}

beforeAll(async () => {
  cloud = serveCloud({ hostname: machineAddress });
  scene.defer(() => cloud.stop());
  token = cloud.tokens.issue({ kind: "personal", login: "jane", organizations: ["acme"] });
  cloud.environments.set("acme", "base", { values: { pulumiConfig: { "web:who": "base", "web:only": "here" } } });
  cloud.environments.set("acme", "team/above", { values: { pulumiConfig: { "web:who": "above" } } });
  issuer = await clusterAsIssuer();
  await applyTo(
    scene,
    newProgram("web", {
      configuration: {
        who: { type: "string", default: "none" },
        only: { type: "string", default: "nowhere" },
        password: { type: "string", secret: true, default: "none" },
      },
      resources: { kept: { type: "pulumi:index:Stash", properties: { input: "${password}" } } },
      outputs: { text: "${who} ${only}", password: "${kept.output}" },
    }),
    newSecret("tokens", {
      accessToken: token,
      wrong: "pul-0123456789abcdef0123456789abcdef01234567",
      password: canary,
    }),
  );
}, slow);

describe("a Stack on Pulumi Cloud", () => {
  test.concurrent(
    "signs in with its service account, uses environments and secrets, and records permalinks",
    async () => {
      const stack = (spec: object): object =>
        cloudStack("signed-in", {
          stack: "acme/web/signed-in",
          backend: cloud.url,
          secretsRef: { password: fromSecret("tokens", "password") },
          ...spec,
        });
      // The organization does not trust the cluster yet.
      await applyTo(scene, stack({ environment: ["base"] }));
      const refused = await stackUntil(scene, "signed-in", hasReason("WorkspaceFailed"));
      const message = `register the OIDC issuer ${issuer.url} and allow system:serviceaccount:${scene.namespace}:pulumi tokens of type organization`;
      expect(JSON.stringify(refused.status?.conditions)).toContain(message);
      expect(
        await waitFor(async () => (await eventsJson(scene, "signed-in")).includes(message), { timeoutMs: 120_000 }),
      ).toBe(true);

      cloud.exchange.setIssuers("acme", issuer);
      await applyTo(scene, stack({ environment: ["base", "team/above"] }));
      const deployed = await stackUntil(scene, "signed-in", isReady);
      expect(deployed.status?.outputs).toEqual({ text: "above here", password: "[secret]" });
      const subject = `system:serviceaccount:${scene.namespace}:pulumi`;
      const own = () => cloud.exchange.granted.filter(({ kind }) => kind === "organization");
      expect(own()[0]).toEqual({ subject, kind: "organization", name: "", expirationSeconds: tokenSeconds });
      expect(cloud.environments.openings.at(-1)).toEqual(["base", "team/above"]);
      const link = "http://console.example.com/acme/web/signed-in/updates/1";
      expect(deployed.status?.lastUpdate).toMatchObject({ type: "up", permalink: link });
      expect((await listUpdates(scene, "signed-in")).map(({ status }) => status?.permalink)).toContain(link);
      expect(cloud.stack("acme/web/signed-in")?.checkpoint.toString()).not.toContain(canary);

      // The next update gets a new token once a tenth of the lifetime is over.
      const before = own().length;
      const deployedAt = Date.now();
      await waitFor(() => Date.now() - deployedAt > tokenSeconds * 100);
      for (const each of cloud.tokens.all())
        if (cloud.tokens.find(each)?.kind === "organization") cloud.tokens.revoke(each);
      await applyTo(scene, stack({ environment: ["base"] }));
      const dropped = await stackUntil(scene, "signed-in", ({ status }) => status?.outputs?.["text"] === "base here");
      expect(dropped.status?.lastUpdate?.permalink).toEndWith("/updates/2");
      expect(own().length).toBeGreaterThan(before);

      const openings = cloud.environments.openings.length;
      await applyTo(scene, stack({ preview: true, config: { who: "plain" } }));
      const previewed = await stackUntil(
        scene,
        "signed-in",
        (each) => isReady(each) && each.status?.lastUpdate?.type === "preview",
      );
      const { permalink = "" } = previewed.status?.lastUpdate ?? {};
      expect(permalink).toContain("/acme/web/signed-in/previews/");
      expect((await listUpdates(scene, "signed-in")).map(({ status }) => status?.permalink)).toContain(permalink);
      expect(previewed.status?.lastUpdate?.stdout?.text).toContain("plain nowhere");
      expect(cloud.environments.openings).toHaveLength(openings);
    },
    slow,
  );

  test.concurrent(
    "reports how to fix a rejected token, and waits or retries while another client updates the stack",
    async () => {
      const stack = (spec: object): object =>
        cloudStack("by-hand", { stack: "acme/by-hand", envRefs: { PULUMI_API: literal(cloud.url) }, ...spec });
      const withToken = (key: string, more: object = {}): object =>
        stack({
          ...more,
          envRefs: { PULUMI_API: literal(cloud.url), PULUMI_ACCESS_TOKEN: fromSecret("tokens", key) },
        });
      await applyTo(scene, withToken("wrong"));
      const refused = await stackUntil(scene, "by-hand", hasReason("WorkspaceFailed"));
      const message = "Pulumi Cloud rejects the access token, because it is invalid or has expired";
      expect(JSON.stringify(refused.status?.conditions)).toContain(message);
      expect(
        await waitFor(async () => (await eventsJson(scene, "by-hand")).includes(message), { timeoutMs: 120_000 }),
      ).toBe(true);

      await applyTo(scene, withToken("accessToken"));
      await stackUntil(scene, "by-hand", isReady);
      const other = cloud.hold("acme/web/by-hand");
      await requestReconcile(scene, "by-hand", "while-updating");
      const conflict = await stackUntil(scene, "by-hand", hasReason("UpdateConflict"));
      expect(conflict.status?.conditions?.find(({ type }) => type === "Stalled")?.message).toContain("another update");
      await untilEvents(scene, "by-hand", "StackUpdateConflictDetected");
      expect(other.result).toBe("in-progress");

      await applyTo(scene, withToken("accessToken", { retryOnUpdateConflict: true }));
      await stackUntil(scene, "by-hand", ({ status, metadata }) => {
        const { lastUpdate } = status ?? {};
        return lastUpdate?.generation === metadata.generation && lastUpdate?.failure === "conflict";
      });
      other.end("succeeded");
      await stackUntil(scene, "by-hand", isReady);
    },
    slow,
  );

  test.concurrent(
    "must exist if the spec sets useLocalStackOnly, and can use tokens of a team or a user",
    async () => {
      const stack = (spec: object): object =>
        cloudStack("missing", { stack: "acme/web/missing", backend: cloud.url, ...spec });
      await waitFor(() => cloud.exchange.isTrusted("acme"), { timeoutMs: 240_000 });
      await applyTo(scene, stack({ useLocalStackOnly: true, oidc: { team: "platform" } }));
      const missing = await stackUntil(scene, "missing", hasReason("WorkspaceFailed"));
      const message = missing.status?.conditions?.find(({ type }) => type === "Stalled")?.message;
      expect(message).toContain("the stack does not exist; create it, or remove useLocalStackOnly");
      const granted = (kind: string) => cloud.exchange.granted.find((each) => each.kind === kind);
      expect(granted("team")).toMatchObject({ name: "platform", expirationSeconds: tokenSeconds });

      await applyTo(scene, stack({ oidc: { user: "jane", expirationSeconds: 600 } }));
      await stackUntil(scene, "missing", isReady);
      expect(cloud.stack("acme/web/missing")?.updates.at(-1)?.author).toBe("jane");
      expect(granted("personal")).toMatchObject({ name: "jane", expirationSeconds: 600 });
    },
    slow,
  );

  test.concurrent(
    "cancels its own interrupted update",
    async () => {
      await applyTo(
        scene,
        cloudStack("interrupted", { stack: "interrupted", backend: cloud.url, accessTokenSecret: "tokens" }),
      );
      await stackUntil(scene, "interrupted", isReady);
      const stack = cloud.stack("acme/web/interrupted");
      if (!stack) throw new Error("the stack does not exist");
      const stall = Promise.withResolvers<void>();
      stack.stalled = stall.promise;
      await requestReconcile(scene, "interrupted", "second");
      const left = await waitFor(() => stack.active, { timeoutMs: 120_000 });
      await killPod(scene, "interrupted");
      stack.stalled = Promise.resolve();
      await stackUntil(
        scene,
        "interrupted",
        (each) => isReady(each) && each.status?.lastUpdate?.state === "succeeded" && left.result === "cancelled",
      );
      stall.resolve();
      expect((await getStack(scene, "interrupted")).status?.observedReconcileRequest).toBe("second");
    },
    slow,
  );
});

test(
  "no token appears in logs, events or objects",
  async () => {
    const pods = await kubectl(["get", "pods", ...at(scene), "--output=name"]);
    const logs = pods
      .trim()
      .split("\n")
      .map((pod) => kubectl(["logs", pod, ...at(scene), "--all-containers"]));
    const kinds = "stacks.pulumi.com,workspaces.auto.pulumi.com,updates.auto.pulumi.com,events,pods,statefulsets";
    const sinks = [kubectl(["get", kinds, ...at(scene), "--output=json"]), scene.operator.log(), ...logs];
    const text = (await Promise.all(sinks)).join("\n");
    expect(cloud.tokens.all().length).toBeGreaterThan(3);
    for (const each of [...cloud.tokens.all(), canary]) expect(text).not.toContain(each);
  },
  slow,
);
