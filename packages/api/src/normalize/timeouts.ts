/** How long a run may take, and how long it may be silent. */
export interface Timeouts {
  readonly totalSeconds?: number;
  readonly silenceSeconds?: number;
}

export const timeoutsOf = (totalSeconds: number | undefined, silenceSeconds: number | undefined): Timeouts => ({
  ...(totalSeconds !== undefined && { totalSeconds }),
  ...(silenceSeconds !== undefined && { silenceSeconds }),
});
