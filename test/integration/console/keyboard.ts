/** A user without a mouse, who has to see where the focus is. */
import { waitFor } from "@pko/testkit";
import { expect } from "bun:test";
import type { Locator, Page } from "playwright-core";

/** The longest page has fewer elements that get the focus. */
const maxPresses = 40;

export class Keyboard {
  readonly #page: Page;

  constructor(page: Page) {
    this.#page = page;
  }

  async press(...keys: readonly string[]): Promise<void> {
    for (const key of keys) await this.#page.keyboard.press(key);
  }

  /** Tabs to the element, and presses a key on it. */
  async activate(target: Locator, key = "Enter", tab = "Tab"): Promise<void> {
    await this.tabTo(target, tab);
    await this.press(key);
  }

  /** On the way, every element with the focus must be marked and in view. */
  async tabTo(target: Locator, tab = "Tab"): Promise<void> {
    await target.waitFor();
    for (let presses = 0; presses < maxPresses; presses++) {
      if (await target.evaluate((element) => element === document.activeElement)) return;
      await this.press(tab);
      expect(await this.#page.evaluate(hiddenFocus)).toBeUndefined();
    }
    throw new Error(`the key ${tab} does not reach ${String(target)}`);
  }

  /** The text of the element with the focus. */
  async focused(): Promise<string> {
    return await this.#page.evaluate(() => {
      const element = document.activeElement as HTMLElement | null;
      if (element === document.body) return "nothing";
      return element?.id === "main" ? "the content" : (element?.innerText ?? "");
    });
  }

  async untilFocused(text: string): Promise<void> {
    await waitFor(async () => {
      expect(await this.focused()).toBe(text);
      return true;
    });
  }
}

/** Runs in the page: the element with the focus if a user cannot see that it has it. */
function hiddenFocus(): string | undefined {
  const element = document.activeElement;
  // After the last element, the focus leaves the page.
  if (!element || element === document.body) return undefined;
  const { outlineStyle, outlineWidth } = getComputedStyle(element);
  const { top, left, bottom, right } = element.getBoundingClientRect();
  const isMarked = outlineStyle !== "none" && Number.parseFloat(outlineWidth) >= 2;
  const isInView = bottom > 0 && right > 0 && top < innerHeight && left < innerWidth;
  return isMarked && isInView ? undefined : element.outerHTML.slice(0, 200);
}
