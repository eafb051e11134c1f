import { type Credentials } from "@pko/kube";
interface AccountOptions {
    /** Credentials of a cluster admin, who creates the account. */
    readonly admin: Credentials;
    /** The operator's namespace. */
    readonly home: string;
    /** The namespaces that it watches, as in the chart's `watchNamespaces`; the whole cluster if absent. */
    readonly namespaces?: readonly string[];
}
export interface OperatorAccount extends AsyncDisposable {
    /** With a token of the account. */
    readonly credentials: Credentials;
    /** The text of a kubeconfig with this token. */
    readonly kubeconfig: string;
    remove(): Promise<void>;
}
/** Returns when its roles are effective. */
export declare function operatorAccount(options: AccountOptions): Promise<OperatorAccount>;
export {};
