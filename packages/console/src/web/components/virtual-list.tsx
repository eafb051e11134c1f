/**
 * A long list of which only the visible rows are in the page. It is one stop of the Tab key, because nobody wants to pass 10,000
 * rows: the arrow keys move from row to row.
 */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

import { rowAfterKey, tabStop, visibleRange } from "../lib/visible-range.ts";

interface Props<T> {
  readonly label: string;
  readonly items: readonly T[];
  readonly rowHeight: number;
  readonly keyOf: (item: T) => string;
  /** Has one link or button that gets the focus. */
  readonly render: (item: T, tabIndex: number) => JSX.Element;
}

export function VirtualList<T>({ label, items, rowHeight, keyOf, render }: Props<T>) {
  const frame = useRef<HTMLDivElement>(null);
  const view = useView(frame);
  const range = visibleRange({ ...view.value, rowHeight, rowCount: items.length });
  const keys = items.slice(range.from, range.to).map(keyOf);
  const focus = useRowFocus(frame, { rowHeight, rowCount: items.length, from: range.from, keys });
  const stop = tabStop(range, { scrollTop: view.value.scrollTop, rowHeight, last: focus.last });
  return (
    <div
      ref={frame}
      class="virtual-list"
      role="list"
      aria-label={label}
      onKeyDown={focus.move}
      onFocusCapture={focus.enter}
      onBlurCapture={focus.leave}
    >
      <div class="virtual-space" role="presentation" style={{ height: `${items.length * rowHeight}px` }}>
        {items.slice(range.from, range.to).map((item, at) => (
          <div
            key={keys[at]}
            class="virtual-row"
            role="listitem"
            aria-setsize={items.length}
            aria-posinset={range.from + at + 1}
            data-index={range.from + at}
            style={{ top: `${(range.from + at) * rowHeight}px`, height: `${rowHeight}px` }}
          >
            {render(item, range.from + at === stop ? 0 : -1)}
          </div>
        ))}
      </div>
    </div>
  );
}

type Frame = { readonly current: HTMLDivElement | null };

/** Which part of the list is visible. */
function useView(frame: Frame) {
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
  return view;
}

interface Rows {
  readonly rowHeight: number;
  readonly rowCount: number;
  /** The first row that is rendered, and the keys of all that are. */
  readonly from: number;
  readonly keys: readonly string[];
}

/** Keeps the focus on its row while rows are sorted anew, and moves it with the keys. */
function useRowFocus(frame: Frame, rows: Rows) {
  const latest = useRef(rows);
  latest.current = rows;
  const last = useSignal(0);
  /** The row with the focus; undefined if it is elsewhere. */
  const held = useRef<string | undefined>(undefined);
  /** The row that gets the focus as soon as it is rendered. */
  const wanted = useRef<number | undefined>(undefined);
  useLayoutEffect(() => {
    if (wanted.current !== undefined) {
      if (focusRow(frame.current, wanted.current)) wanted.current = undefined;
    } else if (held.current !== undefined && document.activeElement === document.body) {
      // The browser drops the focus of an element that is moved. That of a deleted row goes to the one in its place.
      const at = rows.keys.indexOf(held.current);
      focusRow(frame.current, at < 0 ? Math.min(last.peek(), rows.rowCount - 1) : rows.from + at);
    }
  });
  useEffect(() => {
    // A click beside the list takes the focus away, and means it.
    const drop = (): void => void (held.current = undefined);
    document.addEventListener("pointerdown", drop, { capture: true });
    return () => document.removeEventListener("pointerdown", drop, { capture: true });
  }, []);
  return {
    last: last.value,
    enter: ({ target }: FocusEvent): void => {
      const index = indexOf(target);
      if (index === undefined) return;
      held.current = latest.current.keys[index - latest.current.from];
      last.value = index;
    },
    leave: ({ relatedTarget }: FocusEvent): void => {
      // Without another target, the row was moved or removed.
      if (relatedTarget !== null) held.current = undefined;
    },
    move: (event: KeyboardEvent): void => {
      const index = indexOf(event.target);
      const to = index === undefined ? undefined : rowAfterKey(event.key, index, latest.current.rowCount);
      if (to === undefined || !frame.current) return;
      event.preventDefault();
      if (focusRow(frame.current, to)) return;
      // It is rendered once the list has scrolled to it.
      wanted.current = to;
      frame.current.scrollTop = Math.max(0, to * latest.current.rowHeight - frame.current.clientHeight / 2);
    },
  };
}

function indexOf(target: EventTarget | null): number | undefined {
  const row = target instanceof Element ? target.closest("[data-index]") : null;
  return row ? Number(row.getAttribute("data-index")) : undefined;
}

function focusRow(frame: HTMLElement | null, index: number): boolean {
  const focusable = frame?.querySelector<HTMLElement>(`[data-index="${index}"] :is(a, button)`);
  focusable?.focus();
  return focusable !== null && focusable !== undefined;
}
