/** Where the operator crashes: every call that it makes is named and counted, and one of them triggers the crash. */
/**
 * Relative to one call: a crash before the other side receives it; a crash in the middle of a stream; a crash after it was
 * processed, before its response arrives; no crash, but the response is lost; no crash, but the other side never receives it.
 */
export type Where = "before" | "during" | "after" | "lost" | "cut";
export interface Point {
    /** The call, for example `apply stacks/status base`. */
    readonly call: string;
    /** The occurrence of this call, from 1. */
    readonly nth: number;
    readonly where: Where;
}
export declare const pointText: ({ call, nth, where }: Point) => string;
/** All crash points of the calls. */
export declare function crashPoints(calls: readonly string[]): Point[];
export declare class Fuse {
    #private;
    /** Restarts counting. */
    arm(point?: Point): void;
    /** The calls since it was armed. */
    get calls(): readonly string[];
    /** When it was triggered, by `performance.now`; undefined if it was not. */
    get firedAt(): number | undefined;
    /** What happens to this call; undefined for all but one. */
    arrive(call: string): Where | undefined;
}
