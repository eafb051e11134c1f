/** What a Stack tells people. */
import type { Stack } from "@pko/api";

export const messageOf = ({ status }: Stack): string =>
  status?.conditions?.find(({ type }) => type === "Ready")?.message ?? "";

/** Why it is stalled; undefined when it is not. */
export const stalledReasonOf = ({ status }: Stack): string | undefined =>
  status?.conditions?.find(({ type }) => type === "Stalled")?.reason;
