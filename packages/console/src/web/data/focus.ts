/** Where the focus goes when the element that has it is removed: browsers drop it, and the next Tab would start at the top. */
import { useEffect } from "preact/hooks";

export const mainElement = (): HTMLElement | null => document.getElementById("main");

/** Only if nothing else has received the focus meanwhile. */
export function focusAgain(element: HTMLElement | null): void {
  if (document.activeElement === document.body) element?.focus({ preventScroll: true });
}

/** For components with buttons that remove the component itself. */
export function useFocusAfterRemoval(): void {
  useEffect(() => () => queueMicrotask(() => focusAgain(mainElement())), []);
}
