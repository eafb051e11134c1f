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
