/** One kind of strain on the runtime. */
export interface Load {
  readonly done: Promise<unknown>;
  summary(): string;
  /** What went wrong, once it is done. */
  faults(): string[];
}
