import { test, setDefaultTimeout } from "bun:test";
import { openShop, shop } from "./shop.ts";
import { ConsoleStage } from "./stage.ts";
setDefaultTimeout(100_000);
test("probe", async () => {
  const t=Date.now(); const log=(...a: unknown[])=>console.log(Date.now()-t, ...a);
  await using stage = await ConsoleStage.set();
  log("stage");
  await openShop(stage);
  log("shop");
  const url = await stage.withTokens();
  const v = await stage.visit(url);
  v.page.on("console", (m) => log("console", m.text()));
  v.page.on("pageerror", (m) => log("error", m.message));
  v.page.on("requestfailed", (m) => log("failed", m.url(), m.failure()?.errorText));
  v.page.on("response", (m) => log("response", m.status(), m.url().slice(0,100)));
  await v.page.goto(url);
  await Bun.sleep(3000);
  log(await v.text());
  await v.page.screenshot({ path: "/tmp/signin.png" });
  const a = await Promise.race([stage.admin(), Bun.sleep(15000)]);
  if (!a) { log("admin hangs"); return; }
  await Bun.sleep(2000);
  await a.page.screenshot({ path: "/tmp/fleet.png" });
  log(await a.text());
  for (const [n, p] of Object.entries({ stack: `/stacks/${shop}/network`, run: `/runs/${shop}/network-2`, compare: `/runs/${shop}/network-1/compare/network-2`, approval: `/approvals/${shop}/database`, deps: "/dependencies", operator: "/operator" })) {
    await a.page.goto(a.origin + p); await Bun.sleep(1500); await a.page.screenshot({ path: `/tmp/${n}.png` }); log(n);
  }
});
