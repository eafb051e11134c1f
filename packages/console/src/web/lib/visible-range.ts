/** Which rows of a long list are in view. Pure. */

export interface Viewport {
  readonly scrollTop: number;
  readonly height: number;
  readonly rowHeight: number;
  readonly rowCount: number;
}

export interface VisibleRange {
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
}

/** Rows outside the view that are rendered too, so that scrolling shows no gaps. */
const overscan = 10;

export function visibleRange({ scrollTop, height, rowHeight, rowCount }: Viewport): VisibleRange {
  const first = Math.floor(Math.max(0, scrollTop) / rowHeight);
  const last = Math.ceil((Math.max(0, scrollTop) + height) / rowHeight);
  const from = Math.min(Math.max(0, first - overscan), Math.max(0, rowCount - 1));
  return { from, to: Math.min(rowCount, Math.max(from, last + overscan)) };
}

interface TabStop {
  readonly scrollTop: number;
  readonly rowHeight: number;
  /** The row that had the focus last. */
  readonly last: number;
}

/** The row that the Tab key reaches: the last one with the focus, or the first visible one if that is not rendered. */
export function tabStop({ from, to }: VisibleRange, { scrollTop, rowHeight, last }: TabStop): number {
  if (last >= from && last < to) return last;
  return Math.max(from, Math.min(to - 1, Math.ceil(scrollTop / rowHeight)));
}

const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };

/** The row that gets the focus; undefined if the key has no meaning in a list. */
export function rowAfterKey(key: string, index: number, rowCount: number): number | undefined {
  if (key === "Home") return 0;
  if (key === "End") return rowCount - 1;
  const step = steps[key];
  return step === undefined ? undefined : Math.min(rowCount - 1, Math.max(0, index + step));
}
