/** Small pictures next to a text, never instead of one. */
import type { StackState } from "@pko/api/browser";

/** Drawn on 16 × 16 with the color of the text. */
const shapes = {
  cross:
    "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13Zm2.6 4.9L9 8l1.6 1.6-1 1L8 9l-1.6 1.6-1-1L7 8 5.4 6.4l1-1L8 7l1.6-1.6 1 1Z",
  check: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13Zm3.3 5L7.2 10.6 4.7 8.1l1-1 1.5 1.5 3.1-3.1 1 1Z",
  pause: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13ZM7 11H5.5V5H7v6Zm3.5 0H9V5h1.5v6Z",
  clock: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13Zm3 8.2L7.3 8.4V4h1.4v3.4l2.8 1-.5 1.3Z",
  play: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13ZM6.5 11V5L11 8l-4.5 3Z",
  question:
    "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13Zm.8 10.2H7.3v-1.4h1.5v1.4Zm1-4.4c-.7.5-1 .8-1 1.6v.3H7.4v-.5c0-1.2.6-1.7 1.2-2.1.5-.4.8-.6.8-1.1 0-.6-.5-1-1.2-1-.8 0-1.3.5-1.4 1.2H5.3C5.4 4.200 6.500 3.400 8.100 3.400c1.600 0 2.700.900 2.700 2.200 0 .900-.500 1.300-1 1.700Z",
  triangle: "M8 1.700 15 14H1L8 1.700Zm-.700 4.500v4h1.400v-4H7.300Zm0 5v1.300h1.400v-1.300H7.300Z",
  external: "M9 2h5v5h-1.500V4.600L7.500 9.600 6.400 8.500l5-5H9V2ZM3 4h4v1.500H4.500v6h6V9H12v4H3V4Z",
} as const;
export type IconName = keyof typeof shapes;

/** `x` and `y` are its place in a drawing. */
export function Icon({ name, ...place }: { readonly name: IconName; readonly x?: number; readonly y?: number }) {
  return (
    <svg class="icon" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true" focusable="false" {...place}>
      <path d={shapes[name]} fill="currentColor" fill-rule="evenodd" />
    </svg>
  );
}

export type Tone = "bad" | "warning" | "good" | "info" | "muted";

interface Look {
  readonly icon: IconName;
  readonly tone: Tone;
}

export const stateLooks: Readonly<Record<StackState | "Missing", Look>> = {
  Failing: { icon: "cross", tone: "bad" },
  Waiting: { icon: "pause", tone: "warning" },
  Working: { icon: "play", tone: "info" },
  Unknown: { icon: "question", tone: "muted" },
  Drifted: { icon: "triangle", tone: "warning" },
  Ready: { icon: "check", tone: "good" },
  Missing: { icon: "question", tone: "bad" },
};

const resultLooks: Readonly<Record<string, Look>> = {
  succeeded: { icon: "check", tone: "good" },
  failed: { icon: "cross", tone: "bad" },
  running: { icon: "play", tone: "info" },
  waiting: { icon: "clock", tone: "muted" },
  cancelled: { icon: "pause", tone: "warning" },
  interrupted: { icon: "triangle", tone: "warning" },
};

export const StateBadge = ({ state }: { readonly state: StackState | "Missing" }) => (
  <Badge {...stateLooks[state]} text={state} />
);

export const ResultBadge = ({ result }: { readonly result: string }) => (
  <Badge {...(resultLooks[result] ?? { icon: "question", tone: "muted" })} text={result} />
);

export const Badge = ({ icon, tone, text }: Look & { readonly text: string }) => (
  <span class={`badge tone-${tone}`}>
    <Icon name={icon} />
    {text}
  </span>
);
