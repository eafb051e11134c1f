/** Stacks on Pulumi Cloud: every way to sign in, environments, links, conflicts and runs that die. The cloud is a stand-in. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { network } from "@pko/cluster";
import { serveCloud, waitFor, type Cloud, type Issuer } from "@pko/testkit";

import {
  apply,
  clearNamespace,
  getStack,
  isReady,
  kubectl,
  newNamespace,
  stackUntil,
  startOperator,
  updatesOf,
  type Operator,
  type Place,
} from "../harness.ts";

const slow = 300_000;
/** The operator's default for all Stacks. */
const tokenSeconds = 60;
const canary = "canary-secret-value";

let cloud: Cloud;
let operator: Operator;
let place: Place;
let issuer: Issuer;
let token: string;

/** Brief ends for pods, so that a test does not wait for them. */
const workspaceTemplate = { spec: { podTemplate: { spec: { terminationGracePeriodSeconds: 1 } } } };

const literal = (value: string): object => ({ type: "Literal", literal: { value } });
const secret = (name: string, key: string): object => ({ type: "Secret", secret: { name, key } });

function stackOf(name: string, { envRefs = {}, ...spec }: { envRefs?: object; [field: string]: unknown }): object {
  return {
    apiVersion: "pulumi.com/v1",
    kind: "Stack",
    metadata: { name, namespace: place.namespace },
    spec: {
      serviceAccountName: "pulumi",
      programRef: { name: "web" },
      workspaceTemplate,
      ...spec,
      envRefs: { PULUMI_CONSOLE_DOMAIN: literal("console.example.com"), ...envRefs },
    },
  };
}

const secretOf = (name: string, stringData: object): object => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name, namespace: place.namespace },
  stringData,
});

/** The very keys with which the cluster signs the tokens of its service accounts. */
async function clusterAsIssuer(): Promise<Issuer> {
  const discovery = JSON.parse(await kubectl(["get", "--raw", "/.well-known/openid-configuration"])) as {
    issuer: string;
  };
  const keys = JSON.parse(await kubectl(["get", "--raw", "/openid/v1/jwks"])) as Issuer["keys"];
  const subject = new RegExp(`^system:serviceaccount:${place.namespace}:pulumi$`);
  const policies = [
    { kind: "organization", subject },
    { kind: "team", name: "platform", subject },
    { kind: "personal", name: "jane", subject },
  ] as const;
  return { url: discovery.issuer, keys, policies };
}

const eventsOf = (name: string): Promise<string> =>
  kubectl(["get", "events", "-n", place.namespace, `--field-selector=involvedObject.name=${name}`, "--output=json"]);

const request = (name: string, value: string): Promise<string> =>
  kubectl(["annotate", "stack", name, "-n", place.namespace, `pulumi.com/reconciliation-request=${value}`]);

beforeAll(async () => {
  cloud = serveCloud({ hostname: network.machine });
  token = cloud.tokens.issue({ kind: "personal", login: "jane", organizations: ["acme"] });
  cloud.environments.set("acme", "base", { values: { pulumiConfig: { "web:who": "base", "web:only": "here" } } });
  cloud.environments.set("acme", "team/above", { values: { pulumiConfig: { "web:who": "above" } } });
  const namespace = await newNamespace("cloud");
  operator = await startOperator([namespace], `--oidc-expiration-seconds=${tokenSeconds}`);
  place = { client: operator.client, namespace };
  issuer = await clusterAsIssuer();
  await apply(
    {
      apiVersion: "pulumi.com/v1",
      kind: "Program",
      metadata: { name: "web", namespace },
      program: {
        configuration: {
          who: { type: "string", default: "nobody" },
          only: { type: "string", default: "nowhere" },
          password: { type: "string", secret: true, default: "none" },
        },
        resources: { kept: { type: "pulumi:index:Stash", properties: { input: "${password}" } } },
        outputs: { said: "${who} ${only}", password: "${kept.output}" },
      },
    },
    secretOf("tokens", { accessToken: token, wrong: "pul-0123456789abcdef0123456789abcdef01234567", password: canary }),
  );
}, slow);

afterAll(async () => {
  if (place) await clearNamespace(place.namespace);
  await operator.stop();
  await cloud.stop();
});

describe("a Stack on Pulumi Cloud", () => {
  test.concurrent(
    "signs in with its service account alone, uses environments and secrets, and keeps links to what it did",
    async () => {
      const stack = (spec: object): object =>
        stackOf("signed-in", {
          stack: "acme/web/signed-in",
          backend: cloud.url,
          secretsRef: { password: secret("tokens", "password") },
          ...spec,
        });
      // Nobody has registered the cluster yet.
      await apply(stack({ environment: ["base"] }));
      const refused = await stackUntil(place, "signed-in", ({ status }) =>
        Boolean(status?.conditions?.some(({ reason }) => reason === "WorkspaceFailed")),
      );
      const words = `register the OIDC issuer ${issuer.url} and allow system:serviceaccount:${place.namespace}:pulumi a token of the kind organization`;
      expect(JSON.stringify(refused.status?.conditions)).toContain(words);
      expect(await waitFor(async () => (await eventsOf("signed-in")).includes(words), { timeoutMs: 30_000 })).toBe(
        true,
      );

      cloud.exchange.setIssuers("acme", issuer);
      await apply(stack({ environment: ["base", "team/above"] }));
      const deployed = await stackUntil(place, "signed-in", isReady);
      expect(deployed.status?.outputs).toEqual({ said: "above here", password: "[secret]" });
      const subject = `system:serviceaccount:${place.namespace}:pulumi`;
      const own = () => cloud.exchange.granted.filter(({ kind }) => kind === "organization");
      expect(own()[0]).toEqual({ subject, kind: "organization", name: "", expirationSeconds: tokenSeconds });
      expect(cloud.environments.openings.at(-1)).toEqual(["base", "team/above"]);
      const link = "http://console.example.com/acme/web/signed-in/updates/1";
      expect(deployed.status?.lastUpdate).toMatchObject({ type: "up", permalink: link });
      expect((await updatesOf(place, "signed-in")).map(({ status }) => status?.permalink)).toContain(link);
      expect(cloud.stack("acme/web/signed-in")?.checkpoint.toString()).not.toContain(canary);

      // A tenth of its time is over: the next update gets a token of its own.
      const before = own().length;
      const deployedAt = Date.now();
      await waitFor(() => Date.now() - deployedAt > tokenSeconds * 100);
      for (const each of cloud.tokens.all())
        if (cloud.tokens.find(each)?.kind === "organization") cloud.tokens.revoke(each);
      await apply(stack({ environment: ["base"] }));
      const dropped = await stackUntil(place, "signed-in", ({ status }) => status?.outputs?.["said"] === "base here");
      expect(dropped.status?.lastUpdate?.permalink).toEndWith("/updates/2");
      expect(own().length).toBeGreaterThan(before);

      const openings = cloud.environments.openings.length;
      await apply(stack({ preview: true, config: { who: "plain" } }));
      const previewed = await stackUntil(
        place,
        "signed-in",
        (each) => isReady(each) && each.status?.lastUpdate?.type === "preview",
      );
      const { permalink = "" } = previewed.status?.lastUpdate ?? {};
      expect(permalink).toContain("/acme/web/signed-in/previews/");
      expect((await updatesOf(place, "signed-in")).map(({ status }) => status?.permalink)).toContain(permalink);
      expect(previewed.status?.lastUpdate?.stdout?.text).toContain("plain nowhere");
      expect(cloud.environments.openings).toHaveLength(openings);
    },
    slow,
  );

  test.concurrent(
    "says what to do about a refused token, and waits or retries while somebody else updates the stack",
    async () => {
      const stack = (spec: object): object =>
        stackOf("by-hand", { stack: "acme/by-hand", envRefs: { PULUMI_API: literal(cloud.url) }, ...spec });
      const withToken = (key: string, more: object = {}): object =>
        stack({
          ...more,
          envRefs: { PULUMI_API: literal(cloud.url), PULUMI_ACCESS_TOKEN: secret("tokens", key) },
        });
      await apply(withToken("wrong"));
      const refused = await stackUntil(place, "by-hand", ({ status }) =>
        Boolean(status?.conditions?.some(({ reason }) => reason === "WorkspaceFailed")),
      );
      const words = "Pulumi Cloud refuses the access token, because it is wrong or has ended";
      expect(JSON.stringify(refused.status?.conditions)).toContain(words);
      expect(await waitFor(async () => (await eventsOf("by-hand")).includes(words), { timeoutMs: 30_000 })).toBe(true);

      await apply(withToken("accessToken"));
      await stackUntil(place, "by-hand", isReady);
      const other = cloud.hold("acme/web/by-hand");
      await request("by-hand", "while-held");
      const held = await stackUntil(place, "by-hand", ({ status }) =>
        Boolean(status?.conditions?.some(({ reason }) => reason === "UpdateConflict")),
      );
      expect(held.status?.conditions?.find(({ type }) => type === "Stalled")?.message).toContain("another update");
      expect(await eventsOf("by-hand")).toContain("StackUpdateConflictDetected");
      expect(other.result).toBe("in-progress");

      await apply(withToken("accessToken", { retryOnUpdateConflict: true }));
      await stackUntil(place, "by-hand", ({ status, metadata }) => {
        const { lastUpdate } = status ?? {};
        return lastUpdate?.generation === metadata.generation && lastUpdate?.failure === "conflict";
      });
      other.end("succeeded");
      await stackUntil(place, "by-hand", isReady);
    },
    slow,
  );

  test.concurrent(
    "must be there already when its spec says so; tokens are of a team or a user",
    async () => {
      const stack = (spec: object): object =>
        stackOf("missing", { stack: "acme/web/missing", backend: cloud.url, ...spec });
      await waitFor(() => cloud.exchange.isTrusted("acme"), { timeoutMs: 240_000 });
      await apply(stack({ useLocalStackOnly: true, oidc: { team: "platform" } }));
      const missing = await stackUntil(place, "missing", ({ status }) =>
        Boolean(status?.conditions?.some(({ reason }) => reason === "WorkspaceFailed")),
      );
      const message = missing.status?.conditions?.find(({ type }) => type === "Stalled")?.message;
      expect(message).toContain("the stack does not exist; create it, or remove useLocalStackOnly");
      const granted = (kind: string) => cloud.exchange.granted.find((each) => each.kind === kind);
      expect(granted("team")).toMatchObject({ name: "platform", expirationSeconds: tokenSeconds });

      await apply(stack({ oidc: { user: "jane", expirationSeconds: 600 } }));
      await stackUntil(place, "missing", isReady);
      expect(cloud.stack("acme/web/missing")?.updates.at(-1)?.author).toBe("jane");
      expect(granted("personal")).toMatchObject({ name: "jane", expirationSeconds: 600 });
    },
    slow,
  );

  test.concurrent(
    "releases what its own interrupted run holds",
    async () => {
      await apply(stackOf("interrupted", { stack: "interrupted", backend: cloud.url, accessTokenSecret: "tokens" }));
      await stackUntil(place, "interrupted", isReady);
      const stack = cloud.stack("acme/web/interrupted");
      if (!stack) throw new Error("there is no stack");
      const stall = Promise.withResolvers<void>();
      stack.stalled = stall.promise;
      await request("interrupted", "again");
      const left = await waitFor(() => stack.active, { timeoutMs: 120_000 });
      await kubectl(["delete", "pod", "interrupted-workspace-0", "-n", place.namespace, "--force", "--grace-period=0"]);
      stack.stalled = Promise.resolve();
      await stackUntil(
        place,
        "interrupted",
        (each) => isReady(each) && each.status?.lastUpdate?.state === "succeeded" && left.result === "cancelled",
      );
      stall.resolve();
      expect((await getStack(place, "interrupted")).status?.observedReconcileRequest).toBe("again");
    },
    slow,
  );
});

test(
  "no token is told anywhere",
  async () => {
    const pods = await kubectl(["get", "pods", "-n", place.namespace, "--output=name"]);
    const logs = pods
      .trim()
      .split("\n")
      .map((pod) => kubectl(["logs", pod, "-n", place.namespace, "--all-containers"]));
    const kinds = "stacks.pulumi.com,workspaces.auto.pulumi.com,updates.auto.pulumi.com,events,pods,statefulsets";
    const sinks = [kubectl(["get", kinds, "-n", place.namespace, "--output=json"]), operator.log(), ...logs];
    const told = (await Promise.all(sinks)).join("\n");
    expect(cloud.tokens.all().length).toBeGreaterThan(3);
    for (const each of [...cloud.tokens.all(), canary]) expect(told).not.toContain(each);
  },
  slow,
);
