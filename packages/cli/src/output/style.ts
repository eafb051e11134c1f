/** The colors of tones. */
import { styleText } from "node:util";

import type { Tone } from "./blocks.ts";

type Format = Parameters<typeof styleText>[0];

const formats: Readonly<Record<Tone, Format | undefined>> = {
  good: "green",
  bad: "red",
  warning: "yellow",
  muted: "dim",
  strong: "bold",
  plain: undefined,
};

export type Paint = (tone: Tone, text: string) => string;

export const withoutColor: Paint = (_, text) => text;

export const withColor: Paint = (tone, text) => {
  const format = formats[tone];
  return format === undefined || text === "" ? text : styleText(format, text, { validateStream: false });
};
