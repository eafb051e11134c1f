/** A fleet of several pages of the API server: only what is visible is in the page, and all of it can be reached and searched. */
import { stackKind, type Stack } from "@pko/api";
import { limits } from "@pko/console/contract";
import { waitFor } from "@pko/testkit";
import { expect, setDefaultTimeout, test } from "bun:test";

import { stacks } from "../api/install.ts";
import { BrowserStage, stalled } from "./browser-stage.ts";

const timeoutMs = 300_000;
setDefaultTimeout(timeoutMs);

/** `bench/parts/console` has 10,000, without a real API server, to which writing them takes most of a minute. */
const count = 4 * limits.pageSize;
const namespace = "large";
const writers = 32;
const nameAt = (index: number): string => `stack-${String(index).padStart(5, "0")}`;

function stackAt(index: number): Stack {
  const { apiVersion, kind } = stackKind;
  const repository = `https://github.com/acme/team-${index % 20}`;
  return {
    apiVersion,
    kind,
    metadata: { name: nameAt(index), namespace },
    spec: { stack: "dev", projectRepo: repository, branch: "main" },
  };
}

async function createStacks({ client }: BrowserStage): Promise<void> {
  const indexes = Array.from({ length: count }, (_, index) => index).values();
  const write = async (): Promise<void> => {
    for (const index of indexes) await client.create(stacks, stackAt(index));
  };
  await Promise.all(Array.from({ length: writers }, write));
}

test("thousands of Stacks are listed, scrolled and searched", async () => {
  await using stage = await BrowserStage.set();
  await stage.namespace(namespace);
  await createStacks(stage);
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
