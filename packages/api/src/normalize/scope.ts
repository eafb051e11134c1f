/** What the parts of a normalizer need to know about the Stack, and where they report findings. */
import type { Findings } from "./findings.ts";

export interface Scope {
  readonly name: string;
  readonly namespace: string;
  readonly findings: Findings;
}
