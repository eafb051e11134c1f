/** Every page in both themes and on a narrow screen: its content, its accessibility, and the screenshots of the docs. */
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
  { path: "/operator", heading: "Operator", shows: ["operator-0", "running"] },
  { path: "/nowhere", heading: "Not found", shows: ["There is no page /nowhere."] },
];

const looks: readonly (readonly [string, Look])[] = [
  ["light", { theme: "light" }],
  ["dark", { theme: "dark" }],
  ["narrow", { theme: "light", width: 360, height: 740 }],
];

let stage: BrowserStage;
const visitors = new Map<string, Visitor>();

beforeAll(async () => {
  stage = await BrowserStage.set();
  await openShop(stage);
  for (const [name, look] of looks) visitors.set(name, await stage.admin(look));
}, testTimeoutMs);

afterAll(async () => await stage[Symbol.asyncDispose]());

function visitor(name: string): Visitor {
  const found = visitors.get(name);
  if (!found) throw new Error(`there is no visitor ${name}`);
  return found;
}

async function showsAll({ path, heading, shows }: View): Promise<void> {
  const light = visitor("light");
  await light.open(path, heading);
  const main = light.page.locator("main");
  await waitFor(async () => {
    const text = await light.text(main);
    for (const each of shows) expect(text).toContain(each);
    return true;
  });
}

describe.each(views)("$path", ({ path, heading, shows }) => {
  test("shows what it should", async () => await showsAll({ path, heading, shows }));

  test.each(looks.map(([name]) => name))("has no accessibility violations: %s", async (name) => {
    const { page } = visitor(name);
    if (name !== "light") await visitor(name).open(path, heading);
    await waitFor(async () => (await page.locator(".loading").count()) === 0);
    expect(await visitor(name).violations()).toEqual([]);
  });

  test("fits a screen of 360 px", async () => {
    const width = await visitor("narrow").page.evaluate(() => document.documentElement.scrollWidth);
    expect(width).toBeLessThanOrEqual(360);
  });
});

const pictured = views.flatMap(({ path, heading, shows, image }) =>
  image === undefined ? [] : [{ path, heading, shows, image }],
);

test.each(pictured)("the screenshot $image shows the current page", async ({ path, heading, shows, image }) => {
  await showsAll({ path, heading, shows });
  await checkScreenshot(visitor("light").page, image);
});
