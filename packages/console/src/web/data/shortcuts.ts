/** Keys that work anywhere on a page, except while a user types. */
import { useLayoutEffect, useRef } from "preact/hooks";

export function useShortcut(key: string, action: () => void): void {
  const latest = useRef(action);
  latest.current = action;
  // Together with the field, so that whoever sees it can use the key.
  useLayoutEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      if (event.key !== key || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      event.preventDefault();
      latest.current();
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, [key]);
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof Element && target.closest("input, textarea, select, dialog") !== null;
