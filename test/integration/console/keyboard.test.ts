/** Every flow by keyboard alone, with a focus that can be seen and is never lost. */
import {
  approvalKind,
  cancellationRequestAnnotation,
  driftRequestAnnotation,
  reconcileRequestAnnotation,
  type Approval,
} from "@pko/api";
import { resource } from "@pko/kube";
import { waitFor } from "@pko/testkit";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

import { stacks } from "../api/install.ts";
import type { Visitor } from "../../browser/visitor.ts";
import { BrowserStage, stalled, testTimeoutMs } from "./browser-stage.ts";
import { Keyboard } from "./keyboard.ts";
import { openShop, shop } from "./shop.ts";

setDefaultTimeout(testTimeoutMs);

const approvals = resource<Approval>(approvalKind);
let stage: BrowserStage;
let admin: Visitor;
let keyboard: Keyboard;

beforeAll(async () => {
  stage = await BrowserStage.set();
  await openShop(stage);
  admin = await stage.admin();
  keyboard = new Keyboard(admin.page);
}, testTimeoutMs);

afterAll(async () => await stage[Symbol.asyncDispose]());

const stackNamed = async (name: string) => await stage.client.get(stacks, { namespace: shop, name });

/** Finds a Stack, and opens it. */
async function openStack(name: string): Promise<void> {
  const { page } = admin;
  await admin.open("/", "Stacks");
  await page.locator(".fleet-row").first().waitFor();
  await keyboard.press("/");
  await page.keyboard.type(name);
  await admin.untilText("1 of 6 Stacks");
  await keyboard.activate(page.locator(".fleet-row"));
  await page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
  await keyboard.untilFocused("the content");
}

/** Requests an action by its button, and confirms it. Afterwards the button has the focus again. */
async function request(button: string, done: string): Promise<void> {
  const { page } = admin;
  await keyboard.activate(page.getByRole("button", { name: button, exact: true }));
  await keyboard.activate(page.getByRole("dialog").getByRole("button", { name: button, exact: true }));
  await admin.untilText(done);
  await page.getByRole("dialog").waitFor({ state: "detached" });
}

describe("a Stack", () => {
  test("is found, opened, updated, checked for drift, suspended and resumed", async () => {
    await openStack("network");
    await request("Reconcile", "Requested an update of Stack network.");
    await keyboard.untilFocused("Reconcile");
    await request("Check drift", "Requested a check of Stack network for drift.");
    const { annotations } = (await stackNamed("network")).metadata;
    expect(annotations?.[reconcileRequestAnnotation]).toBeDefined();
    expect(annotations?.[driftRequestAnnotation]).toBeDefined();
    await request("Suspend", "Stack network is suspended.");
    await keyboard.untilFocused("Resume");
    await request("Resume", "Stack network is resumed.");
    await keyboard.untilFocused("Suspend");
    expect((await stackNamed("network")).spec.suspend).toBe(false);
  });

  test("is left as it is if its dialog is closed", async () => {
    await openStack("website");
    const button = admin.page.getByRole("button", { name: "Reconcile" });
    for (const close of [["Escape"], ["Enter"]]) {
      // The focus starts on Back, which closes the dialog.
      await keyboard.activate(button);
      await admin.page.getByRole("dialog").waitFor();
      await keyboard.untilFocused("Back");
      await keyboard.press(...close);
      await admin.page.getByRole("dialog").waitFor({ state: "detached" });
      await keyboard.untilFocused("Reconcile");
    }
    expect((await stackNamed("website")).metadata.annotations).toBeUndefined();
  });

  test("keeps the focus on its tabs, and shows resources as a tree and as a graph", async () => {
    const { page } = admin;
    await openStack("network");
    for (const tab of ["Outputs", "Inputs", "Drift", "Events", "YAML", "Resources"]) {
      await keyboard.activate(page.getByRole("navigation", { name: "About" }).getByRole("link", { name: tab }));
      await page.locator(".tabs [aria-current]", { hasText: tab }).waitFor();
      expect(await keyboard.focused()).toStartWith(tab);
    }
    await keyboard.activate(page.getByLabel("Draw the graph"), "Space");
    await page.getByRole("region", { name: "Graph of resources" }).waitFor();
    await keyboard.tabTo(page.getByRole("region", { name: "Graph of resources" }));
    await keyboard.activate(page.locator("summary", { hasText: "shop-dev" }));
    await page.getByText("vpc-0a1b2c3d").waitFor({ state: "hidden" });
    await keyboard.press("Space");
    await page.getByText("vpc-0a1b2c3d").waitFor();
  });
});

test("a run is opened, watched, searched and cancelled", async () => {
  const { page } = admin;
  await openStack("search");
  await keyboard.activate(page.getByRole("main").getByRole("link", { name: "search-7" }));
  await page.getByRole("heading", { level: 1, name: "search-7" }).waitFor();
  await keyboard.untilFocused("the content");
  await admin.untilText("60 %");
  for (const tab of ["Diagnostics", "Changes", "Log", "Timeline"]) {
    await keyboard.activate(page.getByRole("link", { name: tab, exact: true }));
    await keyboard.untilFocused(tab);
  }
  await keyboard.activate(page.getByRole("navigation", { name: "Breadcrumb" }).getByRole("link", { name: "search" }));
  await request("Cancel update", "Requested the cancellation of Update search-7.");
  expect((await stackNamed("search")).metadata.annotations?.[cancellationRequestAnnotation]).toBe("search-7");
});

test("two runs are compared, and the log of one is searched", async () => {
  const { page } = admin;
  await openStack("network");
  await keyboard.activate(page.getByRole("link", { name: /^Runs/ }));
  for (const run of ["network-2", "network-1"]) await keyboard.activate(page.getByLabel(`Compare ${run}`), "Space");
  await keyboard.activate(page.getByRole("button", { name: "Compare two runs" }), "Enter", "Shift+Tab");
  await page.getByRole("heading", { level: 1, name: "Compare two runs" }).waitFor();
  await keyboard.untilFocused("the content");
  await keyboard.activate(page.getByRole("link", { name: "network-2" }));
  await page.getByRole("heading", { level: 1, name: "network-2" }).waitFor();
  await keyboard.activate(page.getByRole("link", { name: "Log", exact: true }));
  await page.getByLabel("Search in the log").waitFor();
  await keyboard.press("/");
  await page.keyboard.type("VPC");
  await admin.untilText("1 of 4 lines");
  await keyboard.tabTo(page.getByRole("list", { name: "Log" }));
});

describe("a plan", () => {
  test.each(["Reject", "Approve"] as const)("is decided with a reason: %s", async (decision) => {
    const { page } = admin;
    await openStack("database");
    await keyboard.activate(page.getByRole("link", { name: "Review the plan" }));
    await page.getByRole("heading", { level: 1, name: "Plan of database" }).waitFor();
    await keyboard.tabTo(page.getByLabel("Reason"));
    await page.keyboard.type(`${decision} by keyboard`);
    await request(decision, decision === "Approve" ? "The plan is approved." : "The plan is rejected.");
    const { items } = await stage.client.list(approvals, { namespace: shop });
    const decisions = items.map(({ spec }) => [spec.updateName, spec.decision, spec.reason]);
    expect(decisions).toContainEqual(["database-plan", decision, `${decision} by keyboard`]);
  });

  test("that is decided elsewhere takes its buttons away, but not the focus", async () => {
    const { page } = admin;
    const { status = {} } = await stackNamed("database");
    await admin.open(`/approvals/${shop}/database`, "Plan of database");
    await keyboard.tabTo(page.getByRole("button", { name: "Approve" }));
    const approval = { ...status.approval, state: "Approved" } as typeof status.approval;
    await stage.status(`${shop}/database`, { ...status, ...(approval && { approval }) });
    await page.getByRole("button", { name: "Approve" }).waitFor({ state: "detached" });
    await keyboard.untilFocused("the content");
    await stage.status(`${shop}/database`, status);
  });
});

test("pages are reached from the header, or past it, and the theme is chosen and kept", async () => {
  const { page } = admin;
  await admin.open("/", "Stacks");
  await keyboard.activate(page.getByRole("link", { name: "Skip to the content" }));
  await keyboard.untilFocused("the content");
  for (const name of ["Approvals", "Dependencies", "Operator"]) {
    await page.reload();
    await keyboard.activate(page.getByRole("navigation", { name: "Main" }).getByRole("link", { name }));
    await page.getByRole("heading", { level: 1, name }).waitFor();
    await keyboard.untilFocused("the content");
  }
  const background = async (): Promise<string> => await page.evaluate(() => getComputedStyle(document.body).color);
  const light = await background();
  await page.reload();
  await keyboard.tabTo(page.getByLabel("Theme"));
  await keyboard.press("End");
  expect(await page.getByLabel("Theme").inputValue()).toBe("dark");
  await page.reload();
  await page.getByRole("heading", { level: 1, name: "Operator" }).waitFor();
  expect(await background()).not.toBe(light);
  await keyboard.tabTo(page.getByLabel("Theme"));
  await keyboard.press("Home");
  expect(await background()).toBe(light);
  expect(await page.evaluate(() => localStorage.length)).toBe(0);
});

test("users sign in and out", async () => {
  const rules = [{ apiGroups: ["pulumi.com"], resources: ["stacks"], verbs: ["get", "list", "watch"] }];
  const token = await stage.user(shop, "typist", rules);
  const visitor = await stage.visit(await stage.withTokens());
  const { page } = visitor;
  const keys = new Keyboard(page);
  await keys.tabTo(page.getByLabel("Token"));
  await page.keyboard.type("wrong");
  await keys.press("Enter");
  await page.getByRole("alert").waitFor();
  await keys.press("Control+A");
  await page.keyboard.insertText(token);
  await keys.press("Enter");
  await visitor.untilText("Choose a namespace whose Stacks you can view.");
  await keys.untilFocused("the content");
  await keys.tabTo(page.getByLabel("Namespace"));
  await page.keyboard.type(shop);
  await keys.press("Enter");
  await visitor.untilText("6 Stacks");
  await page.reload();
  await keys.activate(page.getByRole("button", { name: "Sign out" }));
  await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor();
  await keys.untilFocused("the content");
  await visitor.context.close();
});

test("buttons that remove themselves do not take the focus with them", async () => {
  const { page } = admin;
  await admin.open("/?search=nothing-like-this", "Stacks");
  await keyboard.activate(page.getByRole("button", { name: "Clear the filters" }));
  await admin.untilText("6 Stacks");
  await keyboard.untilFocused("the content");
  await openStack("orders");
  await request("Check drift", "Requested a check of Stack orders for drift.");
  await keyboard.activate(page.getByRole("button", { name: "Dismiss" }));
  await keyboard.untilFocused("the content");
});

test("the list of Stacks is one stop of the Tab key, and a row that moves keeps the focus", async () => {
  const { page } = admin;
  await admin.open("/", "Stacks");
  await admin.untilText("6 Stacks");
  await page.getByLabel("Repository").focus();
  await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  const chosen = await keyboard.focused();
  await page.keyboard.press("Shift+Tab");
  expect(await page.getByLabel("Repository").evaluate((each) => each === document.activeElement)).toBe(true);
  await page.keyboard.press("Tab");
  expect(await keyboard.focused()).toBe(chosen);

  const { status = {} } = await stackNamed("website");
  await page.getByRole("link", { name: "website" }).focus();
  await stage.status(`${shop}/website`, stalled("UpdateFailed", "It moves to the front."));
  await admin.untilText("It moves to the front.");
  await waitFor(async () => (await keyboard.focused()).includes("website"), { what: "the focus on website" });
  await stage.stack(`${shop}/another`, stalled("UpdateFailed", "It is deleted while it has the focus."));
  await page.getByRole("link", { name: "Failing another" }).focus();
  await stage.client.delete(stacks, { namespace: shop, name: "another" });
  await admin.untilNoText("It is deleted");
  const isOnRow = async () => await page.evaluate(() => document.activeElement?.className === "fleet-row");
  await waitFor(isOnRow, { what: "the focus on another row" });
  await stage.status(`${shop}/website`, status);
});
