/** What the benchmark of kubectl-pulumi measures. */

/** One run of a command, in milliseconds. */
export interface CommandTime {
  readonly wallMs: number;
  /** Of the process, which other work on the machine changes less. */
  readonly cpuMs: number;
}

export interface CliFigures {
  /** Of the executable. */
  readonly bytes: number;
  /** Without a cluster: only the start of the program. */
  readonly help: readonly CommandTime[];
  /** With two requests to the API server. */
  readonly version: readonly CommandTime[];
  /** `get -A`, with all Stacks. */
  readonly get: readonly CommandTime[];
  /** The load average of the machine at the end. */
  readonly load: number;
}
