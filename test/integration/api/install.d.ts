import type { Program, Stack, Update, UpdateRecord, Workspace } from "@pko/api";
import { type ApiServer } from "@pko/testkit";
export declare const stacks: import("@pko/kube").Resource<Stack>;
export declare const programs: import("@pko/kube").Resource<Program>;
export declare const workspaces: import("@pko/kube").Resource<Workspace>;
export declare const updates: import("@pko/kube").Resource<Update>;
export declare const updateRecords: import("@pko/kube").Resource<UpdateRecord>;
export declare const pathTo: (path: string) => string;
export declare const quickstart: string;
/** Timeout in milliseconds for a test or the start of the API server on a busy machine. */
export declare const testTimeoutMs = 120000;
export declare function apiServerWithApi(): Promise<ApiServer>;
