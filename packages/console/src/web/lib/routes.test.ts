import { describe, expect, test } from "bun:test";

import { parseRoute, paths, type Route } from "./routes.ts";

const shop = { namespace: "shop", name: "web" };

const cases: readonly (readonly [path: string, route: Route])[] = [
  ["/", { page: "fleet" }],
  ["/stacks/shop/web", { page: "stack", ...shop, tab: "overview" }],
  ["/stacks/shop/web/drift", { page: "stack", ...shop, tab: "drift" }],
  ["/runs/shop/web", { page: "run", ...shop, tab: "timeline" }],
  ["/runs/shop/web/log", { page: "run", ...shop, tab: "log" }],
  ["/runs/shop/web/compare/other", { page: "compare", ...shop, other: "other" }],
  ["/approvals", { page: "approvals" }],
  ["/approvals/shop/web", { page: "approval", ...shop }],
  ["/dependencies", { page: "dependencies" }],
  ["/operator", { page: "operator" }],
  ["/sign-in", { page: "signIn" }],
];

const addresses: Readonly<Record<string, string>> = {
  "/": paths.fleet,
  "/stacks/shop/web": paths.stack(shop),
  "/stacks/shop/web/drift": paths.stack(shop, "drift"),
  "/runs/shop/web": paths.run(shop),
  "/runs/shop/web/log": paths.run(shop, "log"),
  "/runs/shop/web/compare/other": paths.compare(shop, "other"),
  "/approvals/shop/web": paths.approval(shop),
};

describe("an address", () => {
  test.each(cases)("%s", (path, route) => expect(parseRoute(path)).toEqual(route));

  test.each(Object.entries(addresses))("%s is what links use", (path, link) => expect(link).toBe(path));

  test.each([
    "/nowhere",
    "/stacks",
    "/stacks/shop",
    "/stacks/shop/web/nothing",
    "/stacks/shop/web/drift/more",
    "/runs/shop/web/compare",
    "/operator/more",
    "/stacks/%E0%A4%A/web/x",
    "/stacks/shop/Web",
    "/stacks/shop/a%2Cb",
    "/stacks/%2e%2e/web",
    "/runs/shop/web/compare/-",
    "/approvals/shop/a%20b",
  ])("%s is missing", (path) => expect(parseRoute(path).page).toBe("missing"));
});
