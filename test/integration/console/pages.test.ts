/** Every page and state in both themes and on a narrow screen: content, accessibility, and the screenshots of the docs. */
import { waitFor } from "@pko/testkit";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

import type { Visitor } from "../../browser/visitor.ts";
import { BrowserStage, testTimeoutMs, type Look } from "./browser-stage.ts";
import { checkScreenshot } from "./screenshots.ts";
import { openShop, shop } from "./shop.ts";

setDefaultTimeout(testTimeoutMs);

interface View {
  readonly path: string;
  readonly heading: string;
  /** Texts that must appear. */
  readonly shows: readonly string[];
  /** The name of its screenshot. */
  readonly image?: string;
}

const views: readonly View[] = [
  {
    path: "/",
    heading: "Stacks",
    shows: ["6 Stacks", "Failing", "conflicts with another subnet", "retry of the failed update in 5m"],
    image: "fleet",
  },
  {
    path: `/stacks/${shop}/network`,
    heading: "network",
    shows: ["RetryingAfterFailure", "The last update failed and will be retried", "Retry of the failed update in 5m"],
    image: "stack",
  },
  {
    path: `/stacks/${shop}/network/resources`,
    heading: "network",
    shows: ["4 resources", "vpc-0a1b2c3d", "private-a", "needs main"],
  },
  {
    path: `/stacks/${shop}/network/resources?view=graph`,
    heading: "network",
    shows: ["Arrows lead to what needs a resource", "Below each resource are its children"],
    image: "resources",
  },
  { path: `/stacks/${shop}/network/runs`, heading: "network", shows: ["network-2", "network-1", "the first update"] },
  { path: `/stacks/${shop}/network/outputs`, heading: "network", shows: ["vpcId", "eu-central-1"] },
  {
    path: `/stacks/${shop}/database/inputs`,
    heading: "database",
    shows: ["VPC_ID", "output vpcId of Stack network", "Secret database, key password", "not shown"],
  },
  { path: `/stacks/${shop}/orders/drift`, heading: "orders", shows: ["backupRetentionPeriod", "changed"] },
  { path: `/stacks/${shop}/network/events`, heading: "network", shows: ["There are no events."] },
  {
    path: `/stacks/${shop}/network/yaml`,
    heading: "network",
    shows: ["apiVersion: pulumi.com/v1", "repoDir: network"],
  },
  {
    path: `/runs/${shop}/network-2`,
    heading: "network-2",
    shows: ["programError", "private-a", "create", "14 s", "failed"],
    image: "run",
  },
  {
    path: `/runs/${shop}/network-2/diagnostics`,
    heading: "network-2",
    shows: ["InvalidSubnet.Conflict", "deprecated"],
  },
  { path: `/runs/${shop}/network-2/log`, heading: "network-2", shows: ["Updating (dev):", "4 lines"] },
  { path: `/runs/${shop}/search-7`, heading: "search-7", shows: ["running", "60 %"] },
  {
    path: `/runs/${shop}/network-1/compare/network-2`,
    heading: "Compare two runs",
    shows: ["77aa01b", "9c4f2d1", "config changed", "program the same", "create failed"],
    image: "compare",
  },
  { path: "/approvals", heading: "Approvals", shows: ["1 to replace, 1 to create", "1 destructive"] },
  {
    path: `/approvals/${shop}/database`,
    heading: "Plan of database",
    shows: ["replace orders", "because of engineVersion", '"15.4"', "[secret]", "website", "Approve", "Reject"],
    image: "approval",
  },
  {
    path: "/dependencies",
    heading: "Dependencies",
    shows: ["4 Stacks, 3 dependencies", "network", "website"],
    image: "dependencies",
  },
  { path: "/operator", heading: "Operator", shows: ["operator-0 ready leader", "running"] },
  { path: "/nowhere", heading: "Not found", shows: ["There is no page /nowhere."] },
];

const looks = {
  light: { theme: "light", width: 1280, height: 800 },
  dark: { theme: "dark", width: 1280, height: 800 },
  narrow: { theme: "light", width: 360, height: 740 },
} as const satisfies Record<string, Look>;

let stage: BrowserStage;
let visitor: Visitor;

beforeAll(async () => {
  stage = await BrowserStage.set();
  await openShop(stage);
  visitor = await stage.admin();
}, testTimeoutMs);

afterAll(async () => await stage[Symbol.asyncDispose]());

/** Of the page that is open, and of those that are opened next. */
async function changeLook(name: keyof typeof looks): Promise<void> {
  const { theme, ...size } = looks[name];
  await visitor.page.emulateMedia({ colorScheme: theme });
  await visitor.page.setViewportSize(size);
}

/** Each test of a view continues with the page that the first one has opened. */
describe.each(views)("$path", ({ path, heading, shows, image }) => {
  test("shows what it should", async () => {
    await changeLook("light");
    await visitor.open(path, heading);
    const main = visitor.page.locator("main");
    await waitFor(async () => {
      const text = await visitor.text(main);
      for (const each of shows) expect(text).toContain(each);
      return true;
    });
  });

  if (image !== undefined) {
    test(`the screenshot ${image} shows the current page`, async () => await checkScreenshot(visitor.page, image));
  }

  test.each(["light", "dark", "narrow"] as const)("has no accessibility violations: %s", async (name) => {
    await changeLook(name);
    await waitFor(async () => (await visitor.page.locator(".loading").count()) === 0);
    expect(await visitor.violations()).toEqual([]);
  });

  test("fits a screen of 360 px", async () => {
    const width = await visitor.page.evaluate(() => document.documentElement.scrollWidth);
    expect(width).toBeLessThanOrEqual(360);
  });
});

interface State {
  readonly name: string;
  /** Of a user who is signed in unless it signs out. */
  readonly arrange: (visitor: Visitor) => Promise<void>;
}

const empty = (path: string, heading: string, text: string): State => ({
  name: `empty: ${text}`,
  arrange: async (visitor) => {
    await visitor.open(path, heading);
    await visitor.untilText(text);
  },
});

const states: readonly State[] = [
  {
    name: "a dialog before a decision",
    arrange: async (visitor) => {
      await visitor.open(`/approvals/${shop}/database`, "Plan of database");
      await visitor.page.getByRole("button", { name: "Approve" }).click();
      await visitor.untilText("Stacks that run afterwards: orders, website.");
    },
  },
  {
    name: "a dialog before a cancellation",
    arrange: async (visitor) => {
      await visitor.open(`/stacks/${shop}/search`, "search");
      await visitor.page.getByRole("button", { name: "Cancel update" }).click();
      await visitor.untilText("Cancel Update search-7?");
    },
  },
  {
    name: "an action that fails",
    arrange: async (visitor) => {
      await visitor.open(`/stacks/${shop}/search`, "search");
      await visitor.page.route("**/stacks/search", async (route) => await route.fulfill({ status: 500 }));
      await visitor.confirm("Reconcile");
      await visitor.untilText("The server answered 500");
      await visitor.page.unrouteAll();
    },
  },
  {
    name: "a lost connection",
    arrange: async (visitor) => {
      await visitor.page.route("**/stream?*", async (route) => {
        await route.fulfill({ status: 503, json: { message: "The console serves too many pages." } });
      });
      await visitor.open(`/stacks/${shop}/search`, "search");
      await visitor.untilText("Reconnecting…");
      await visitor.untilText("The console serves too many pages.");
      await visitor.page.unrouteAll();
    },
  },
  empty("/?search=nothing-like-this", "Stacks", "No Stack matches the filters."),
  empty(`/stacks/${shop}/nobody`, "nobody", `There is no Stack nobody in namespace ${shop}.`),
  empty(`/stacks/${shop}/website/runs`, "website", "The Stack has not run yet."),
  empty(`/stacks/${shop}/website/resources`, "website", "No run has been recorded yet."),
  empty(`/stacks/${shop}/website/outputs`, "website", "The Stack has no outputs."),
  empty(`/stacks/${shop}/website/drift`, "website", "The Stack has not been checked for drift."),
  empty(`/runs/${shop}/nothing`, "nothing", `There is no run nothing in namespace ${shop}.`),
  empty(`/runs/${shop}/a/compare/b`, "Compare two runs", "There is no record of a."),
  empty("/dependencies?namespace=default", "Dependencies", "No Stack depends on another."),
];

const isNarrowEnough = ({ page }: Visitor): Promise<boolean> =>
  page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);

async function isAccessible(visitor: Visitor): Promise<void> {
  expect(await visitor.violations()).toEqual([]);
  expect(await isNarrowEnough(visitor)).toBe(true);
}

describe.each(["dark", "narrow"] as const)("accessible: %s", (name) => {
  test.each(states)("$name", async ({ arrange }) => {
    await changeLook(name);
    await arrange(visitor);
    await isAccessible(visitor);
  });

  test("the sign-in page, what a user may not see, and the end of a session at a proxy", async () => {
    const rules = [{ apiGroups: ["pulumi.com"], resources: ["stacks"], verbs: ["get", "list", "watch"] }];
    const token = await stage.user(shop, `clerk-${name}`, rules);
    const guest = await stage.visit(await stage.withTokens(), looks[name]);
    await guest.page.getByLabel("Token").fill("wrong");
    await guest.page.getByRole("button", { name: "Sign in" }).click();
    await guest.page.getByRole("alert").waitFor();
    await isAccessible(guest);
    await guest.signIn(token);
    await guest.untilText("You do not have permission to list the Stacks of all namespaces.");
    await isAccessible(guest);
    for (const tab of ["", "/runs", "/events"]) {
      await guest.open(`/stacks/${shop}/network${tab}`, "network");
      await guest.untilText(tab === "" ? "Read-only" : "You do not have permission to view");
      await isAccessible(guest);
    }
    await guest.open(`/approvals/${shop}/database`, "Plan of database");
    await guest.untilText("You do not have permission to approve or reject this plan.");
    await isAccessible(guest);
    await guest.page.route("**/session", async (route) => await route.fulfill({ status: 401 }));
    await guest.page.reload();
    await guest.untilText("Your session at the proxy in front of this console has ended.");
    await isAccessible(guest);
    await guest.context.close();
  });
});
