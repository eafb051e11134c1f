import { type WorkspaceRef } from "@pko/rpc";
import type { Certificate } from "@pko/rpc/pki";
import type { Where } from "./fuse.ts";
interface RpcProxyOptions {
    readonly workspace: WorkspaceRef;
    /** The pod's address, where the operator connects to the agent. */
    readonly hostname: string;
    readonly port: number;
    /** Where the agent really listens. */
    readonly agentPort: number;
    /** The certificates of agent and operator: for each, the proxy impersonates the other. */
    readonly agent: Certificate;
    readonly operator: Certificate;
    /** Called for each call. */
    readonly arrive: (method: string) => Where | undefined;
    /** Called before a call is forwarded to the agent. */
    readonly onForward: (method: string, body: string) => void;
    /** Crashes the operator. */
    readonly crash: () => Promise<void>;
}
export interface RpcProxy {
    stop(): Promise<void>;
}
export declare function rpcProxy(options: RpcProxyOptions): Promise<RpcProxy>;
export {};
