/** What users do in the browser: decide, request and search, with permissions of their own. The keyboard: keyboard.test.ts. */
import { approvalKind, driftRequestAnnotation, reconcileRequestAnnotation, type Approval } from "@pko/api";
import { limits } from "@pko/console/contract";
import { resource } from "@pko/kube";
import { emptyContent, encodeContent } from "@pko/records";
import { freePort, waitFor } from "@pko/testkit";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

import { tcpFront } from "../../../packages/testkit/src/tcp-front.ts";
import { stacks } from "../api/install.ts";
import { Visitor } from "../../browser/visitor.ts";
import { ago, BrowserStage, ready, stalled, testTimeoutMs } from "./browser-stage.ts";
import type { Rule } from "../harness/permissions.ts";
import { openShop, shop } from "./shop.ts";

setDefaultTimeout(testTimeoutMs);

const approvals = resource<Approval>(approvalKind);
const canary = "canary-7f3e9a";
let stage: BrowserStage;
let admin: Visitor;

beforeAll(async () => {
  stage = await BrowserStage.set();
  await openShop(stage);
  admin = await stage.admin();
}, testTimeoutMs);

afterAll(async () => await stage[Symbol.asyncDispose]());

const stackNamed = async (name: string) => await stage.client.get(stacks, { namespace: shop, name });

const actions: readonly (readonly [button: string, done: string, isDone: () => Promise<boolean>])[] = [
  [
    "Reconcile",
    "Requested an update of Stack website.",
    async () => (await stackNamed("website")).metadata.annotations?.[reconcileRequestAnnotation] !== undefined,
  ],
  [
    "Check drift",
    "Requested a check of Stack website for drift.",
    async () => (await stackNamed("website")).metadata.annotations?.[driftRequestAnnotation] !== undefined,
  ],
  ["Suspend", "Stack website is suspended.", async () => (await stackNamed("website")).spec.suspend === true],
  ["Resume", "Stack website is resumed.", async () => (await stackNamed("website")).spec.suspend === false],
];

describe("the buttons of a Stack", () => {
  test.each(actions)("%s", async (button, done, isDone) => {
    await admin.open(`/stacks/${shop}/website`, "website");
    await admin.confirm(button);
    await admin.untilText(done);
    expect(await isDone()).toBe(true);
  });
});

test("buttons wait for an answer about the permission: a request that fails is not a denial", async () => {
  const { page } = admin;
  await stage.stack(`${shop}/unanswered`, ready("The first message."));
  await page.route("**/selfsubjectaccessreviews", async (route) => await route.abort(), { times: 1 });
  const failed = page.waitForEvent("requestfailed", (request) => request.url().endsWith("reviews"));
  await admin.open(`/stacks/${shop}/unanswered`, "unanswered");
  await failed;
  expect(await admin.text()).not.toContain("Read-only");
  await stage.status(`${shop}/unanswered`, ready("The second message."));
  await page.getByRole("button", { name: "Reconcile" }).waitFor();
  await stage.client.delete(stacks, { namespace: shop, name: "unanswered" });
});

test("an approval is written with the digest of the plan that was shown", async () => {
  await admin.open(`/approvals/${shop}/database`, "Plan of database");
  await admin.page.getByLabel("Reason").fill("looks good");
  await admin.confirm("Approve");
  await admin.untilText("The plan is approved.");
  const { items } = await stage.client.list(approvals, { namespace: shop });
  expect(items.map(({ spec }) => spec)).toEqual([
    {
      updateName: "database-plan",
      updateUid: "11111111-2222-3333-4444-555555555555",
      digest: "sha256:5f2c9e0d",
      decision: "Approve",
      decidedBy: "admin",
      reason: "looks good",
    },
  ]);
});

test("a page follows its Stack without a reload", async () => {
  await stage.stack(`${shop}/live`, ready("The first message."));
  await admin.open(`/stacks/${shop}/live`, "live");
  await admin.untilText("The first message.");
  await stage.status(`${shop}/live`, stalled("UpdateFailed", "The second message."));
  await admin.untilText("The second message.");
  await stage.client.delete(stacks, { namespace: shop, name: "live" });
  await admin.untilText(`There is no Stack live in namespace ${shop}.`);
});

test("a stack with 1,000 resources has a tree of all, and a message instead of the graph", async () => {
  const root = "urn:pulumi:dev::shop::pulumi:pulumi:Stack::large-dev";
  const names = Array.from({ length: 999 }, (_, index) => `bucket-${index}`);
  const children = names.map((name) => ({ urn: `urn:pulumi:dev::shop::aws:s3/bucket:Bucket::${name}`, parent: root }));
  await stage.stack(`${shop}/large`, ready());
  await stage.record(`${shop}/large-1`, {
    stackName: "large",
    type: "up",
    result: "succeeded",
    startTime: ago(60),
    endTime: ago(50),
    content: await encodeContent({ ...emptyContent, resources: [{ urn: root }, ...children] }),
  });
  await admin.open(`/stacks/${shop}/large/resources`, "large");
  await admin.page.getByLabel("Draw the graph").check();
  await admin.untilText("999 resources are too many to draw: at most 200 are. The tree shows all.");
  await admin.untilText("bucket-998");
  expect(admin.page.url()).toContain("?view=graph");
  await stage.client.delete(stacks, { namespace: shop, name: "large" });
});

test("the search and the filters are part of the address", async () => {
  await admin.open("/?search=subnet", "Stacks");
  await admin.untilText("1 of 6 Stacks");
  await admin.page.getByLabel("Search").fill("acme/billing");
  await admin.untilText("authentication failed");
  expect(admin.page.url()).toContain("search=acme%2Fbilling");
  await admin.page.reload();
  await admin.untilText("1 of 6 Stacks");
  await admin.page.getByLabel("Search").fill("nothing like this");
  await admin.page.getByRole("button", { name: "Clear the filters" }).click();
  await admin.untilText("6 Stacks");
});

test("two runs are chosen and compared, and the log is searched", async () => {
  await admin.open(`/stacks/${shop}/network/runs`, "network");
  await admin.page.getByLabel("Compare network-2").check();
  await admin.page.getByLabel("Compare network-1").check();
  await admin.page.getByRole("button", { name: "Compare two runs" }).click();
  await admin.untilText("config changed");
  expect(new URL(admin.page.url()).pathname).toBe(`/runs/${shop}/network-1/compare/network-2`);
  await admin.open(`/runs/${shop}/network-2/log`, "network-2");
  await admin.page.getByLabel("Search in the log").fill("VPC");
  await admin.untilText("1 of 4 lines");
  expect(await admin.page.locator("mark").allInnerTexts()).toEqual(["Vpc"]);
});

test("a page that the server refuses says so, and continues when another one is closed", async () => {
  const first = await stage.admin();
  const pages = [first.page];
  while (pages.length <= limits.streamsPerSession) {
    const page = await first.context.newPage();
    pages.push(page);
    await page.goto(first.origin);
    await page.getByRole("heading", { level: 1, name: "Stacks" }).waitFor();
  }
  const last = new Visitor(pages.at(-1) ?? first.page, first.origin);
  await last.untilText(`This session has ${limits.streamsPerSession} open pages already.`);
  await first.page.close();
  await last.untilText("6 Stacks");
  await last.untilNoText("open pages already");
  await first.context.close();
});

test("an address that was used continues the session in its browser, and is refused in another one", async () => {
  const visitor = await stage.admin();
  await visitor.page.goto("about:blank");
  await visitor.page.goto(`${visitor.origin}/#token=used`);
  await visitor.untilText("6 Stacks");
  const other = await stage.visit(`${visitor.origin}/#token=used`);
  await other.untilText("The address with this token has been used");
  await other.untilText("Open the address from your terminal.");
  expect(await other.page.getByLabel("Token").count()).toBe(0);
  await Promise.all([visitor.context.close(), other.context.close()]);
});

test("a page of a session that has ended shows the sign-in page, and no data", async () => {
  const url = await stage.withTokens();
  const visitor = await stage.visit(url);
  await visitor.signIn(await stage.user(shop, "leaving", [read("pulumi.com", "stacks")]));
  await visitor.open(`/stacks/${shop}/network`, "network");
  await visitor.untilText("RetryingAfterFailure");
  const other = await visitor.context.newPage();
  await other.goto(url);
  await other.getByRole("button", { name: "Sign out" }).click();
  await visitor.page.getByRole("heading", { name: "Sign in" }).waitFor();
  expect(await visitor.text()).not.toContain("RetryingAfterFailure");
  await visitor.context.close();
});

test("HTML in messages, outputs and events of others is text", async () => {
  const html = "<img src=x onerror=document.title='attacked'><script>document.title='attacked'</script>";
  const link = "javascript:document.title='attacked'";
  const lastUpdate = { state: "failed", message: html, permalink: link };
  const status = stalled("UpdateFailed", html, { outputs: { [html]: html }, lastUpdate });
  await stage.stack(`${shop}/hostile`, status, {
    stack: html,
    projectRepo: link,
    branch: html,
    config: { [html]: html },
  });
  const { page } = admin;
  await admin.open("/", "Stacks");
  await admin.untilText(html);
  for (const tab of ["", "/outputs", "/inputs", "/yaml"]) {
    await admin.open(`/stacks/${shop}/hostile${tab}`, "hostile");
    await admin.untilText(html);
    expect(await page.locator("main img, main script").count()).toBe(0);
    expect(await page.locator('a[href^="javascript"]').count()).toBe(0);
    expect(await page.title()).toBe("hostile · Pulumi");
  }
  await stage.client.delete(stacks, { namespace: shop, name: "hostile" });
});

const read = (apiGroups: string, ...resources: string[]): Rule => ({
  apiGroups: [apiGroups],
  resources,
  verbs: ["get", "list", "watch"],
});

describe("with permissions of their own", () => {
  test("without a token there is only the sign-in page", async () => {
    const visitor = await stage.visit(await stage.withTokens());
    await visitor.page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await visitor.text()).not.toContain("network");
    expect(await visitor.violations()).toEqual([]);
    await visitor.page.getByLabel("Token").fill("wrong");
    await visitor.page.getByRole("button", { name: "Sign in" }).click();
    await visitor.page.getByRole("alert").waitFor();
  });

  test("two users see different data, and the name of what they may not do", async () => {
    await stage.namespace("bakery");
    await stage.stack("bakery/oven", ready());
    const url = await stage.withTokens();
    const reader = await stage.user("bakery", "reader", [
      read("pulumi.com", "stacks"),
      read("auto.pulumi.com", "updates"),
    ]);
    const baker = await stage.visit(url);
    await baker.signIn(reader);
    await baker.untilText("You do not have permission to list the Stacks of all namespaces.");
    await baker.untilText("list stacks");
    await baker.page.getByLabel("Namespace").fill("bakery");
    await baker.page.getByRole("button", { name: "Show its Stacks" }).click();
    await baker.untilText("oven");
    expect(await baker.text()).not.toContain("network");
    await baker.page.getByRole("link", { name: /oven/ }).click();
    await baker.untilText("Read-only: you lack the permission patch stacks.pulumi.com in namespace bakery.");
    await baker.open("/stacks/bakery/oven/events", "oven");
    await baker.untilText("You do not have permission to view events.");
    expect(await baker.violations()).toEqual([]);
    await baker.open(`/stacks/${shop}/network`, "network");
    await baker.untilText(`You do not have permission to view the Stack ${shop}/network.`);
    const clerk = await stage.visit(url);
    await clerk.signIn(await stage.user(shop, "clerk", [read("pulumi.com", "stacks")]));
    await clerk.open(`/stacks/${shop}/network`, "network");
    await clerk.untilText("RetryingAfterFailure");
    await clerk.open("/stacks/bakery/oven", "oven");
    await clerk.untilText("You do not have permission to view the Stack bakery/oven.");
  });

  test("without pods/log a running run is shown without its log, with the missing permission", async () => {
    const rules = [read("pulumi.com", "stacks"), read("auto.pulumi.com", "updates", "updaterecords")];
    const visitor = await stage.visit(await stage.withTokens());
    await visitor.signIn(await stage.user(shop, "no-logs", rules));
    await visitor.open(`/runs/${shop}/search-7`, "search-7");
    await visitor.untilText("You do not have permission to view the live events and the log of this run.");
    await visitor.untilText("pods/log");
    await visitor.untilText("60 %");
  });

  test("a page continues after a lost connection, with what changed meanwhile", async () => {
    await stage.stack(`${shop}/lost`, ready("Before the connection was lost."));
    const { port } = new URL(await stage.withTokens());
    const front = await tcpFront(Number(port), await freePort());
    const visitor = await stage.visit(`http://127.0.0.1:${front.port}/`);
    await visitor.signIn(await stage.user(shop, "traveller", [read("pulumi.com", "stacks")]));
    await visitor.open(`/stacks/${shop}/lost`, "lost");
    await visitor.untilText("Before the connection was lost.");
    await front.refuse();
    await visitor.untilText("Reconnecting…");
    await stage.status(`${shop}/lost`, ready("While the connection was lost."));
    await front.accept();
    await visitor.untilText("While the connection was lost.");
    await visitor.untilNoText("Reconnecting…");
    await visitor.context.close();
    await front.close();
  });

  test("neither a Secret nor a secret in a spec reaches the page or the storage of the browser", async () => {
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "database", namespace: shop } };
    const secrets = resource({ apiVersion: "v1", kind: "Secret", plural: "secrets", namespaced: true });
    await stage.client.create(secrets, { ...secret, stringData: { password: canary } } as typeof secret);
    await stage.stack(`${shop}/plain`, ready("It has secrets in plain text."), {
      secrets: { old: canary },
      secretsRef: { literal: { type: "Literal", literal: { value: canary } } },
    });
    const visitor = await stage.admin();
    const { page } = visitor;
    await page.addInitScript(recordFetches);
    const files: Promise<string>[] = [];
    page.on("response", (response) => {
      if (!response.url().includes("/stream")) files.push(response.text().catch(() => ""));
    });
    for (const [path, heading, text] of secretPages) {
      await visitor.open(path, heading);
      await visitor.untilText(text);
      const fetched = await page.evaluate(() => (globalThis as typeof globalThis & Recording).fetched);
      expect(fetched).toContain(`"name":"plain"`);
      expect(fetched + (await page.content())).not.toContain(canary);
    }
    const stored = await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie]);
    expect(stored).toEqual([0, 0, ""]);
    expect(page.url()).not.toContain("token");
    const texts = await Promise.all(files);
    expect(texts.filter((each) => each !== "").length).toBeGreaterThan(secretPages.length);
    expect(texts.join("\n")).not.toContain(canary);
    await visitor.context.close();
    await stage.client.delete(stacks, { namespace: shop, name: "plain" });
  });
});

const secretPages = [
  ["/", "Stacks", "It has secrets in plain text."],
  [`/stacks/${shop}/plain`, "plain", "It has secrets in plain text."],
  [`/stacks/${shop}/plain/inputs`, "plain", "spec.secrets (deprecated: in plain text)"],
  [`/stacks/${shop}/plain/yaml`, "plain", "[secret]"],
  [`/stacks/${shop}/plain/outputs`, "plain", "The Stack has no outputs."],
] as const;

interface Recording {
  fetched: string;
}

/** Runs in the page: keeps what it receives, streams included. */
function recordFetches(): void {
  const recording = Object.assign(globalThis, { fetched: "" });
  const { fetch } = globalThis;
  const record = async (...request: Parameters<typeof fetch>): Promise<Response> => {
    const response = await fetch(...request);
    const { status, headers } = response;
    const [shown, recorded] = response.body?.tee() ?? [];
    const sink = new WritableStream<string>({ write: (text) => void (recording.fetched += text) });
    const decoder = new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>;
    recorded
      ?.pipeThrough(decoder)
      .pipeTo(sink)
      .catch(() => undefined);
    return new Response(shown, { status, headers });
  };
  globalThis.fetch = Object.assign(record, fetch);
}

test.each([
  ["wide", 1280],
  ["narrow", 360],
])("a long list has only the visible rows in the page: %s", async (_, width) => {
  const namespace = `rows-${width}`;
  await stage.namespace(namespace);
  const names = Array.from({ length: 150 }, (_, index) => `row-${String(index).padStart(3, "0")}`);
  for (const name of names) await stage.stack(`${namespace}/${name}`);
  const visitor = await stage.admin({ width });
  await visitor.open(`/?namespace=${namespace}`, "Stacks");
  const rows = visitor.page.locator(".fleet-row");
  await visitor.untilText("row-000");
  // All rows are loaded: the key End would otherwise select the last one of those that are.
  await visitor.untilText(/\b150 (of \d+ )?Stacks/);
  expect(await rows.count()).toBeLessThan(60);
  await rows.first().focus();
  await visitor.page.keyboard.press("End");
  await waitFor(
    async () => await visitor.page.evaluate(() => document.activeElement?.textContent?.includes("row-149")),
  );
  expect(await rows.count()).toBeLessThan(60);
  await visitor.context.close();
});
