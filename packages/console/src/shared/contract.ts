/** What the server and the page of the console exchange. */

/** How the console learns who its user is. */
export type SignInMode =
  /** `kubectl pulumi ui`: the user's kubeconfig. */
  | "kubeconfig"
  /** A proxy in front of the console has sent the user's token with this request. */
  | "proxy"
  /** The user enters a token. */
  | "token";

/** `GET /session` */
export interface Session {
  readonly signedIn: boolean;
  /** As the API server knows the user. */
  readonly user?: string;
  readonly mode: SignInMode;
  /** The context of the kubeconfig. */
  readonly context?: string;
}

/** The body of `POST /session`; the response is a Session, or 401 with a Problem. */
export interface SignIn {
  readonly token: string;
}

/** The body of a response with which the console itself refuses a request. Those of the API server are Status objects. */
export interface Problem {
  readonly message: string;
}

/** Required for every request that is not a GET: a form of another site cannot set it. */
export const consoleHeader = "X-Pulumi-Console";
export const consoleHeaderValue = "1";

/** The prefix of the paths that are passed on to the API server. */
export const apiPrefix = "/k8s";

/** A part of the address that the browser never sends: `kubectl pulumi ui` opens `/#token=…`, which the page posts to `/session`. */
export const urlTokenParameter = "token";

export const watchedResources = [
  "stacks",
  "updates",
  "approvals",
  "updaterecords",
  "workspaces",
  "programs",
  "events",
  "pods",
] as const;
export type WatchedResource = (typeof watchedResources)[number];

export interface WatchSubscription {
  readonly id: string;
  readonly kind: "watch";
  readonly resource: WatchedResource;
  /** All namespaces if absent. */
  readonly namespace?: string;
  readonly name?: string;
  readonly labelSelector?: string;
  /** Continue after it; the initial list is skipped. */
  readonly resourceVersion?: string;
}

export interface LogSubscription {
  readonly id: string;
  readonly kind: "log";
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly sinceSeconds?: number;
}

/** `GET /stream?q=…` subscribes to a list of them, as JSON in base64url. */
export type Subscription = WatchSubscription | LogSubscription;

export type Change = "ADDED" | "MODIFIED" | "DELETED";

/** The data of an event of the stream, as JSON. `id` is the subscription's. */
export type StreamMessage =
  /** Without `metadata.managedFields`, with masked secrets (`server/mask.ts`), and a Stack of a list without what lists do not show (`server/slim.ts`). The version is empty until `synced`: an initial list cannot be resumed. */
  | {
      readonly id: string;
      readonly type: "object";
      readonly change: Change;
      readonly object: unknown;
      readonly resourceVersion: string;
    }
  /** The initial list is complete; later also how far the watch is, if nothing has changed for a while. */
  | { readonly id: string; readonly type: "synced"; readonly resourceVersion: string }
  /** All objects are sent again, until `synced`: at the start without a version, and after 410 Gone. */
  | { readonly id: string; readonly type: "reset" }
  /** A line of a pod's log. */
  | { readonly id: string; readonly type: "line"; readonly text: string }
  /** The log has ended. */
  | { readonly id: string; readonly type: "end" }
  /** For example `get pods/log in namespace a`. It is not retried. */
  | { readonly id: string; readonly type: "denied"; readonly permission: string; readonly message: string }
  /** It is retried. */
  | { readonly id: string; readonly type: "error"; readonly message: string };

export const limits = {
  bodyBytes: 64 * 1024,
  streamsPerSession: 4,
  /** Of all sessions together. */
  streams: 500,
  requestsPerSecond: 20,
  requestBurst: 200,
  subscriptionsPerStream: 32,
  heartbeatSeconds: 15,
  pageSize: 500,
} as const;

/** The parameter `q` of `/stream`. */
export function encodeSubscriptions(subscriptions: readonly Subscription[]): string {
  const bytes = new TextEncoder().encode(JSON.stringify(subscriptions));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
}
