/** The console behind a proxy with HTTPS, which authenticates users or leaves that to the console. */
import { freePort } from "@pko/testkit";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";

import { stacks } from "../api/install.ts";
import type { Visitor } from "../../browser/visitor.ts";
import { AuthProxy, type SignedOutAnswer } from "./auth-proxy.ts";
import { BrowserStage, ready, stalled, testTimeoutMs } from "./browser-stage.ts";

setDefaultTimeout(testTimeoutMs);

const namespace = "proxied";
let stage: BrowserStage;
let token: string;

beforeAll(async () => {
  stage = await BrowserStage.set();
  await stage.namespace(namespace);
  await stage.stack(`${namespace}/web`, ready("The first message."));
  token = await stage.user(namespace, "jane", [
    { apiGroups: ["pulumi.com"], resources: ["stacks"], verbs: ["get", "list", "watch", "patch"] },
  ]);
}, testTimeoutMs);

afterAll(async () => await stage[Symbol.asyncDispose]());

const portOf = (url: string): number => Number(new URL(url).port);
const page = `/stacks/${namespace}/web`;

async function openPage(proxy: AuthProxy): Promise<Visitor> {
  const visitor = await stage.visit(`${proxy.origin}${page}`);
  await visitor.page.getByRole("heading", { level: 1, name: "web", exact: true }).waitFor();
  return visitor;
}

test("users whom a proxy has signed in use the console without a sign-in page, whichever replica serves them", async () => {
  const replicas = [portOf(await stage.withTokens()), portOf(await stage.withTokens())];
  await using proxy = await AuthProxy.start({ port: await freePort(), replicas, token });
  const visitor = await openPage(proxy);
  await visitor.untilText("The first message.");
  await visitor.untilText(`system:serviceaccount:${namespace}:jane`);
  expect(await visitor.page.getByRole("button", { name: "Sign out" }).count()).toBe(0);
  await stage.status(`${namespace}/web`, stalled("UpdateFailed", "The second message."));
  await visitor.untilText("The second message.");
  await visitor.confirm("Suspend");
  await visitor.untilText("Stack web is suspended.");
  expect((await stage.client.get(stacks, { namespace, name: "web" })).spec.suspend).toBe(true);
  const cookies = await visitor.context.cookies();
  expect(cookies.map(({ name }) => name)).toEqual(["proxy-session"]);
  await visitor.context.close();
});

test.each(["page", "redirect"] satisfies SignedOutAnswer[])(
  "a session that has ended at the proxy is reported, and continues after a sign-in: with a %s",
  async (signedOutAnswer) => {
    const replicas = [portOf(await stage.withTokens())];
    await using proxy = await AuthProxy.start({ port: await freePort(), replicas, token, signedOutAnswer });
    const visitor = await openPage(proxy);
    await stage.status(`${namespace}/web`, ready("Before the session has ended."));
    await visitor.untilText("Before the session has ended.");
    proxy.endSession();
    await visitor.untilText("Your session at the proxy in front of this console has ended.");
    expect(await visitor.text()).not.toContain("Before the session has ended.");
    expect(await visitor.page.getByLabel("Token").count()).toBe(0);
    await stage.status(`${namespace}/web`, ready("After the session has ended."));
    await visitor.page.keyboard.press("Tab");
    await visitor.page.keyboard.press("Enter");
    await visitor.untilText("After the session has ended.");
    expect(new URL(visitor.page.url()).pathname).toBe(page);
    await visitor.context.close();
  },
);

test("a request that a proxy answers with its sign-in page signs the user out", async () => {
  const replicas = [portOf(await stage.withTokens())];
  await using proxy = await AuthProxy.start({ port: await freePort(), replicas, token, signedOutAnswer: "redirect" });
  const visitor = await openPage(proxy);
  await visitor.page.route("**/k8s/**", async (route) => await route.fulfill({ contentType: "text/html", body: "" }));
  await visitor.page.reload();
  await visitor.untilText("Your session at the proxy in front of this console has ended.");
  await visitor.context.close();
});

test("behind HTTPS and a replaced host, a token can be entered, and its cookie cannot be set by other sites", async () => {
  const port = await freePort();
  const replicas = [portOf(await stage.withTokens({ hosts: [`localhost:${port}`] }))];
  await using proxy = await AuthProxy.start({ port, replicas, replacedHost: "127.0.0.1" });
  const visitor = await stage.visit(proxy.origin);
  await visitor.signIn(token);
  const [cookie, ...others] = await visitor.context.cookies();
  expect(others).toEqual([]);
  expect(cookie).toMatchObject({ name: "__Host-pulumi-console", secure: true, httpOnly: true, sameSite: "Strict" });
  await visitor.open(page, "web");
  await visitor.untilText("session has ended.");
  await visitor.context.close();
});
