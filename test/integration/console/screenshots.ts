/**
 * The screenshots of the docs. Fonts differ between machines, so pictures are not compared. What a picture shows is kept
 * beside these tests: the content of the page as a screen reader reads it, and the digest of the style sheet. If the page
 * differs, the picture is outdated. `UPDATE_GOLDEN=1` rewrites both.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";

import { buildConsole } from "@pko/console/build";
import { waitFor } from "@pko/testkit";
import { expect } from "bun:test";
import type { Page } from "playwright-core";

const pictures = join(import.meta.dir, "../../../docs/images");
const contents = join(import.meta.dir, "testdata");
const command = "UPDATE_GOLDEN=1 node_modules/.bin/bun test test/integration/console/pages.test.ts";

/** Throws if the picture does not show the page as it is now. */
export async function checkScreenshot(page: Page, name: string): Promise<void> {
  const [picture, contentFile] = [join(pictures, `console-${name}.png`), join(contents, `${name}.yaml`)];
  if (process.env["UPDATE_GOLDEN"]) {
    const content = await settledContent(page);
    await page.screenshot({ path: picture, animations: "disabled" });
    await Bun.write(contentFile, content);
    return;
  }
  expect(existsSync(picture)).toBe(true);
  const kept = await Bun.file(contentFile).text();
  await waitFor(
    async () => {
      expect(await contentOf(page)).toBe(kept);
      return true;
    },
    { what: `the page that ${picture} shows. If it should look different, run ${command} and check the picture` },
  );
}

/** The watches of a page arrive one after the other. */
async function settledContent(page: Page): Promise<string> {
  let last = "";
  return await waitFor(
    async () => {
      const content = await contentOf(page);
      const isSettled = content === last;
      last = content;
      return isSettled && content;
    },
    { pollMs: 1000, what: "the page to be complete" },
  );
}

async function contentOf(page: Page): Promise<string> {
  const style = [...(await assets)].find(([path]) => path.endsWith(".css"))?.[1].hash ?? "";
  return `# The style sheet: ${style}\n${await page.locator("body").ariaSnapshot()}\n`;
}

const assets = buildConsole();
