/** One kind of load on the runtime. */
export interface Load {
  readonly done: Promise<unknown>;
  summary(): string;
  /** All failures, when it is done. */
  faults(): string[];
}
