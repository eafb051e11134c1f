/** A long list of which only the visible rows are in the page. The arrow keys move from row to row. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

import { visibleRange } from "../lib/visible-range.ts";

interface Props<T> {
  readonly label: string;
  readonly items: readonly T[];
  readonly rowHeight: number;
  readonly keyOf: (item: T) => string;
  /** Has one link or button that gets the focus. */
  readonly render: (item: T) => JSX.Element;
}

export function VirtualList<T>({ label, items, rowHeight, keyOf, render }: Props<T>) {
  const frame = useRef<HTMLDivElement>(null);
  const view = useSignal({ scrollTop: 0, height: 800 });
  useLayoutEffect(() => {
    const element = frame.current;
    if (!element) return undefined;
    const measure = (): void => {
      view.value = { scrollTop: element.scrollTop, height: element.clientHeight };
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, [view]);
  const { from, to } = visibleRange({ ...view.value, rowHeight, rowCount: items.length });
  const moveFocus = useArrowKeys(frame, { rowHeight, rowCount: items.length });
  return (
    <div ref={frame} class="virtual-list" role="list" aria-label={label} onKeyDown={moveFocus}>
      <div class="virtual-space" role="presentation" style={{ height: `${items.length * rowHeight}px` }}>
        {items.slice(from, to).map((item, at) => (
          <div
            key={keyOf(item)}
            class="virtual-row"
            role="listitem"
            aria-setsize={items.length}
            aria-posinset={from + at + 1}
            data-index={from + at}
            style={{ top: `${(from + at) * rowHeight}px`, height: `${rowHeight}px` }}
          >
            {render(item)}
          </div>
        ))}
      </div>
    </div>
  );
}

interface Rows {
  readonly rowHeight: number;
  readonly rowCount: number;
}

function useArrowKeys(frame: { readonly current: HTMLDivElement | null }, { rowHeight, rowCount }: Rows) {
  const wanted = useRef<number | undefined>(undefined);
  // The row may be rendered only after the list has scrolled to it.
  useEffect(() => {
    if (wanted.current === undefined) return;
    if (focusRow(frame.current, wanted.current)) wanted.current = undefined;
  });
  return (event: KeyboardEvent): void => {
    const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
    const row = event.target instanceof Element ? event.target.closest("[data-index]") : null;
    const step = steps[event.key];
    const index = Number(row?.getAttribute("data-index"));
    const target = event.key === "Home" ? 0 : event.key === "End" ? rowCount - 1 : step && index + step;
    if (!row || target === undefined || !frame.current) return;
    event.preventDefault();
    const to = Math.min(rowCount - 1, Math.max(0, target));
    if (focusRow(frame.current, to)) return;
    wanted.current = to;
    frame.current.scrollTop = Math.max(0, to * rowHeight - frame.current.clientHeight / 2);
  };
}

function focusRow(frame: HTMLElement | null, index: number): boolean {
  const focusable = frame?.querySelector<HTMLElement>(`[data-index="${index}"] :is(a, button)`);
  focusable?.focus();
  return focusable !== null && focusable !== undefined;
}
