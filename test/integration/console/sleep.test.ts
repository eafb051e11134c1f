/** A tab that was frozen, or whose machine slept: it continues where it was, with what changed meanwhile. */
import { podNameOf } from "@pko/api";
import { formatFeedLine, type RunEvent } from "@pko/records";
import { faultProxy, freePort, waitFor, type FaultProxy } from "@pko/testkit";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";

import { tcpFront, type TcpFront } from "../../../packages/testkit/src/tcp-front.ts";
import { stacks, updates } from "../api/install.ts";
import type { Visitor } from "../../browser/visitor.ts";
import { ago, BrowserStage, now, ready, testTimeoutMs } from "./browser-stage.ts";
import { PodLog } from "./pod-log.ts";

setDefaultTimeout(testTimeoutMs);

const namespace = "asleep";
const hour = 3_600_000;
let stage: BrowserStage;
/** Between the console and the API server. */
let proxy: FaultProxy;
/** Between the browser and the console. */
let front: TcpFront;
let token: string;
let user: Visitor;

beforeAll(async () => {
  stage = await BrowserStage.set();
  proxy = await faultProxy(stage.server.credentials);
  await stage.namespace(namespace);
  token = await stage.user(namespace, "sleeper", [
    { apiGroups: ["pulumi.com", "auto.pulumi.com"], resources: ["*"], verbs: ["get", "list", "watch"] },
    { apiGroups: [""], resources: ["pods/log"], verbs: ["get"] },
  ]);
  const { port } = new URL(await stage.withTokens({ api: proxy }));
  front = await tcpFront(Number(port), await freePort());
  user = await stage.visit(`http://127.0.0.1:${front.port}/`);
  await user.signIn(token);
}, testTimeoutMs);

afterAll(async () => {
  await stage[Symbol.asyncDispose]();
  await front.close();
  await proxy.close();
});

/** Meanwhile the tab runs nothing, and its connections are lost. */
async function sleep(meanwhile: () => Promise<void>): Promise<void> {
  const { context, page } = user;
  const browser = await context.newCDPSession(page);
  await browser.send("Page.setWebLifecycleState", { state: "frozen" });
  await front.refuse();
  await meanwhile();
  await front.accept();
  await browser.send("Page.setWebLifecycleState", { state: "active" });
  await browser.detach();
}

const remove = async (name: string): Promise<void> => await stage.client.delete(stacks, { namespace, name });

/** Returns what undoes it. */
type Fault = () => () => void;

const nothing: Fault = () => () => undefined;

const expire: Fault = () => {
  let count = 1;
  return proxy.on(({ verb }) => (verb === "watch" && count-- > 0 ? { status: 410, reason: "Expired" } : undefined));
};

test.each([
  ["its version is still known", nothing],
  ["its version has expired", expire],
])("a tab that wakes up misses nothing if %s", async (_, prepare) => {
  await stage.stack(`${namespace}/changed`, ready("Before the sleep."));
  await stage.stack(`${namespace}/deleted`, ready("Deleted while asleep."));
  await user.open(`/?namespace=${namespace}`, "Stacks");
  await user.untilText("2 Stacks");
  let restore = nothing();
  await sleep(async () => {
    await stage.status(`${namespace}/changed`, ready("Changed while asleep."));
    await stage.stack(`${namespace}/created`, ready("Created while asleep."));
    await remove("deleted");
    restore = prepare();
  });
  await user.untilText("Changed while asleep.");
  await user.untilText("Created while asleep.");
  await user.untilNoText("Deleted while asleep.");
  await user.untilNoText("Reconnecting…");
  restore();
  await Promise.all(["changed", "created"].map(remove));
});

test("a tab that wakes up shows every event of a run", async () => {
  await stage.update(`${namespace}/web-1`, "web", { status: { startTime: ago(60) } });
  const { metadata } = await stage.client.get(updates, { namespace, name: "web-1" });
  const log = new PodLog(proxy, { namespace, name: podNameOf("web") });
  const report = (seq: number, name: string): void => {
    const urn = `urn:pulumi:dev::shop::aws:s3/bucket:Bucket::${name}`;
    const event: RunEvent = { kind: "resource", phase: "finished", op: "create", urn, resourceType: "bucket" };
    log.append(formatFeedLine(metadata.uid ?? "", { seq, time: ago(60 - seq), event }));
  };
  report(1, "first");
  await user.open(`/runs/${namespace}/web-1`, "web-1");
  await user.untilText("first");
  await sleep(async () => report(2, "second"));
  report(3, "third");
  await user.untilText(/first.*second.*third/);
  expect(await user.text()).not.toContain("missing");
  log.end();
});

test("a connection that is open but dead after a sleep is replaced", async () => {
  await stage.stack(`${namespace}/dead`, ready("Before the connection was dead."));
  await user.open(`/stacks/${namespace}/dead`, "dead");
  await user.untilText("Before the connection was dead.");
  front.freezeOpen();
  await stage.status(`${namespace}/dead`, ready("After the connection was dead."));
  // Requests may use other connections of the browser that are dead, too, until the time for each is over.
  let time = now;
  const isShown = async (): Promise<boolean> => {
    await user.page.clock.setFixedTime((time += hour));
    return (await user.text()).includes("After the connection was dead.");
  };
  await waitFor(isShown, { timeoutMs: 60_000, what: "the page after the connection was dead" });
  front.cut();
  await remove("dead");
});

test("a tab whose token has expired while it was asleep shows the sign-in page, then continues", async () => {
  await stage.stack(`${namespace}/expired`, ready("Before the token has expired."));
  await user.open(`/stacks/${namespace}/expired`, "expired");
  await user.untilText("Before the token has expired.");
  let accept = nothing();
  await sleep(async () => {
    await stage.status(`${namespace}/expired`, ready("After the token has expired."));
    accept = proxy.on(() => ({ status: 401, reason: "Unauthorized" }));
  });
  await user.page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor();
  expect(await user.text()).not.toContain("token has expired.");
  accept();
  await user.signIn(token);
  await user.untilText("After the token has expired.");
  await remove("expired");
});
