/** One user's browser, for tests of the console's pages. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { shared, waitFor } from "@pko/testkit";
import { chromium, type Browser, type BrowserContext, type Locator, type Page } from "playwright-core";

import { browserPath } from "./browser-path.ts";

export async function launchBrowser(): Promise<Browser> {
  return await chromium.launch({
    executablePath: browserPath,
    // Tests run as root, for which Chromium's sandbox does not work.
    args: ["--no-sandbox"],
    timeout: 120_000,
    // Chromium's socket is there, and the path of a socket has at most 107 characters.
    env: { ...process.env, TMPDIR: "/tmp" },
  });
}

/** The browser that all tests of a process share. Each visitor has a context of its own. */
export const sharedBrowser = shared(launchBrowser, (browser) => browser.close());

/** For everything that a page has to do. */
const pageMs = 60_000;

export class Visitor {
  readonly context: BrowserContext;
  readonly page: Page;
  readonly origin: string;

  constructor(page: Page, origin: string) {
    this.context = page.context();
    this.page = page;
    page.setDefaultTimeout(pageMs);
    this.origin = origin;
  }

  /** Goes to an address of the console as a link does, without losing the session. */
  async open(path: string, heading: string): Promise<void> {
    await this.page.goto(`${this.origin}${path}`);
    await this.page.getByRole("heading", { level: 1, name: heading, exact: true }).waitFor();
  }

  async signIn(token: string): Promise<void> {
    await this.page.getByLabel("Token").fill(token);
    await this.page.getByRole("button", { name: "Sign in" }).click();
    await this.page.getByRole("navigation", { name: "Main" }).waitFor();
  }

  /** Clicks a button that asks first, and confirms. */
  async confirm(button: string): Promise<void> {
    await this.page.getByRole("button", { name: button, exact: true }).click();
    await this.page.getByRole("dialog").getByRole("button", { name: button, exact: true }).click();
  }

  async follow(link: string | RegExp): Promise<void> {
    await this.page.getByRole("link", { name: link }).first().click();
  }

  async text(within: Locator = this.page.locator("body")): Promise<string> {
    return (await within.innerText()).replaceAll(/\s+/g, " ").trim();
  }

  /** The timeout message has the text of the page. */
  async untilText(text: string | RegExp, timeoutMs: number = pageMs): Promise<void> {
    let last = "";
    const isShown = async (): Promise<boolean> => {
      last = await this.text();
      return typeof text === "string" ? last.includes(text) : text.test(last);
    };
    try {
      await waitFor(isShown, { timeoutMs, what: `the text ${String(text)}` });
    } catch (error) {
      throw new Error(`${String(error)}\nthe page ${this.page.url()} shows: ${last}`, { cause: error });
    }
  }

  async untilNoText(text: string): Promise<void> {
    await waitFor(async () => !(await this.text()).includes(text), {
      timeoutMs: pageMs,
      what: `the page without the text ${text}`,
    });
  }

  /** What axe-core finds, one line for each violation. */
  async violations(): Promise<string[]> {
    if (!(await this.page.evaluate(() => "axe" in globalThis))) await this.page.evaluate(axeSource);
    const found = await this.page.evaluate(async () => {
      const { axe } = globalThis as unknown as { axe: Axe };
      return (await axe.run({ resultTypes: ["violations"] })).violations;
    });
    return found.map(
      ({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 200)).join(" | ")}`,
    );
  }
}

interface Axe {
  /** Details of other results take time, and nobody reads them. */
  run(options: { resultTypes: ["violations"] }): Promise<{ violations: Violation[] }>;
}

interface Violation {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string }[];
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
