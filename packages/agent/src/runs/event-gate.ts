/**
 * Decides which of a command's events belong to the run. A check before a change reports the same resources and diagnostics
 * as the change, so its events are held back: they are reported only if the check fails.
 */
import type { RunEvent } from "@pko/records";
import type { EngineEvent } from "../pulumi/engine-events.ts";
import type { StepKind } from "../pulumi/operation.ts";

interface Numbered {
  readonly event: RunEvent;
  readonly sequence: number;
}

export class EventGate {
  readonly #kind: StepKind;
  readonly #held: Numbered[] = [];
  #isOpen: boolean;

  constructor(kind: StepKind) {
    this.#kind = kind;
    this.#isOpen = kind === "preview" || kind === "change";
  }

  /** Whether the command's events show changes, or the preview that was requested. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The events to report now. */
  pass({ event, sequence, isPreview }: EngineEvent): Numbered[] {
    const isFirstChange = !this.#isOpen && this.#kind === "planned" && isPreview === false;
    if (isFirstChange) this.#isOpen = true;
    const passed = isFirstChange ? this.#held.splice(0) : [];
    if (!event) return passed;
    if (this.#isOpen) return [...passed, { event, sequence }];
    if ((event.kind === "diagnostic" || event.kind === "policy") && this.#held.length < maxHeld) {
      this.#held.push({ event, sequence });
    }
    return passed;
  }

  /** What a check has reported. */
  held(): readonly Numbered[] {
    return this.#held;
  }
}

/** A program that prints endlessly must not fill the memory. */
const maxHeld = 1_000;
