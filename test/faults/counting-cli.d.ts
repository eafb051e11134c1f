export declare class CountingCli {
    #private;
    readonly path: string;
    constructor(folder: string);
    /** How often each operation started since the last call, by operation and stack. */
    takeRuns(): Record<string, number>;
}
