import { type Client } from "@pko/kube";
import type { Where } from "./fuse.ts";
interface KubeletOptions {
    readonly client: Client;
    readonly namespace: string;
    readonly folder: string;
    /** The path of the agent's program. */
    readonly agent: string;
    /** The path of the agents' Pulumi CLI. */
    readonly pulumi: string;
    /** Called for each call of the operator. */
    readonly arrive: (method: string, workspace: string) => Where | undefined;
    /** Crashes the operator. */
    readonly crash: () => Promise<void>;
}
export declare class FakeKubelet implements AsyncDisposable {
    #private;
    readonly faults: unknown[];
    /** The digest of the plan that each run applies, by run. Agents keep a plan only until its run ends. */
    readonly appliedPlans: Map<string, string>;
    constructor(options: KubeletOptions);
    [Symbol.asyncDispose](): Promise<void>;
}
export {};
