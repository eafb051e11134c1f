import { type ApiServer } from "@pko/testkit";
export interface Stage extends AsyncDisposable {
    readonly server: ApiServer;
    readonly folder: string;
    /** Bundled once, because each lifecycle starts them several times. */
    readonly operator: string;
    readonly agent: string;
}
export declare function setStage(): Promise<Stage>;
