import { type Client, type Credentials, type Resource } from "@pko/kube";
import { type TestNamespace } from "@pko/testkit";
/** Those of the quickstart manifest. The API server for tests aggregates no roles: that needs a controller. */
export type UserRole = "view" | "edit" | "approver";
export interface TestUser {
    readonly name: string;
    readonly client: Client;
    readonly credentials: Credentials;
}
export declare function createUser({ server, name: namespace }: TestNamespace, { name, roles }: {
    readonly name: string;
    readonly roles: readonly UserRole[];
}): Promise<TestUser>;
/** The message with which the API server denies the request; undefined if it accepts it. */
export declare function denial(request: Promise<unknown>): Promise<string | undefined>;
/** Deletes all objects of a kind with one request, as `kubectl delete --raw` does. */
export declare function deleteCollection({ credentials }: TestUser, { apiVersion, plural }: Resource, namespace: string): Promise<{
    readonly status: number;
    readonly text: string;
}>;
/** The API server enforces a new policy, and a new role, after a delay. */
export declare function untilDenied(what: string, request: () => Promise<unknown>): Promise<void>;
