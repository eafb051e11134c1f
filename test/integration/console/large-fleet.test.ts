/** A fleet of several pages of the API server: only what is visible is in the page, and all of it can be reached and searched. */
import { stackKind, type Stack } from "@pko/api";
import { limits } from "@pko/console/contract";
import { storeObjects, waitFor } from "@pko/testkit";
import { expect, setDefaultTimeout, test } from "bun:test";

import { stacks } from "../api/install.ts";
import { ago, BrowserStage, stalled } from "./browser-stage.ts";

const timeoutMs = 300_000;
setDefaultTimeout(timeoutMs);

/** `bench/parts/console` has 10,000, without a real API server. */
const count = 4 * limits.pageSize;
const namespace = "large";
const nameAt = (index: number): string => `stack-${String(index).padStart(5, "0")}`;

function stackAt(index: number): Stack {
  const { apiVersion, kind } = stackKind;
  const repository = `https://github.com/acme/team-${index % 20}`;
  return {
    apiVersion,
    kind,
    metadata: {
      name: nameAt(index),
      namespace,
      uid: crypto.randomUUID(),
      generation: 1,
      creationTimestamp: ago(3600),
    },
    spec: { stack: "dev", projectRepo: repository, branch: "main" },
  };
}

async function storeStacks({ server }: BrowserStage): Promise<void> {
  const objects = Array.from({ length: count }, (_, index) => ({ resource: stacks, object: stackAt(index) }));
  await storeObjects(server.etcdUrl, objects);
}

test("thousands of Stacks are listed, scrolled and searched", async () => {
  await using stage = await BrowserStage.set();
  await stage.namespace(namespace);
  await storeStacks(stage);
  await stage.status(`${namespace}/${nameAt(1777)}`, stalled("UpdateFailed", "the one that fails"));
  const { page } = await stage.admin();
  const subtitle = page.locator(".subtitle");
  await waitFor(async () => (await subtitle.innerText()) === `${count} Stacks`, {
    timeoutMs: 120_000,
    what: "the whole fleet",
  });
  const rows = page.locator(".fleet-row");
  expect(await rows.first().innerText()).toContain(nameAt(1777));
  expect(await rows.count()).toBeLessThan(60);
  await rows.first().focus();
  await page.keyboard.press("End");
  await waitFor(
    async () => await page.evaluate((name) => document.activeElement?.textContent?.includes(name), nameAt(count - 1)),
  );
  expect(await rows.count()).toBeLessThan(60);
  await page.getByLabel("Search").fill("stack-01234");
  await waitFor(async () => (await subtitle.innerText()) === `1 of ${count} Stacks`);
  await page.getByLabel("Search").fill("");
  await page.getByLabel("Repository").selectOption("https://github.com/acme/team-3");
  await waitFor(async () => (await subtitle.innerText()) === `${count / 20} of ${count} Stacks`);
});
