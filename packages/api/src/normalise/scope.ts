/** The Stack that is being normalised: what its parts need to know of the whole, and where they report. */
import type { Findings } from "./findings.ts";

export interface Scope {
  readonly name: string;
  readonly namespace: string;
  readonly findings: Findings;
}
