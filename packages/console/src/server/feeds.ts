/** The sources of a stream: a watch or a log, which is resumed after every interruption until the stream ends. */
import {
  backoffDelay,
  connect,
  isExpired,
  isForbidden,
  isUnauthorized,
  listPages,
  missingPermission,
  permissionText,
  resource,
  sleep,
  type Clock,
  type Credentials,
  type Resource,
} from "@pko/kube";

import {
  limits,
  type LogSubscription,
  type StreamMessage,
  type Subscription,
  type WatchSubscription,
} from "../shared/contract.ts";
import { watchable } from "./allow-list.ts";
import { readLog } from "./log-feed.ts";
import { slim } from "./slim.ts";
import { userAgent } from "./upstream.ts";

export interface FeedContext {
  readonly credentials: Credentials;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Waits while the page is slow. */
  readonly emit: (message: StreamMessage) => Promise<void>;
  /** The API server no longer accepts the credentials. */
  readonly onUnauthorized: () => void;
}

const retryPolicy = { baseMs: 500, factor: 2, capMs: 15_000, jitter: 0.3 };

/** The API server checks permissions only when a watch starts, so a user who loses one can see the objects for this long. */
const watchSeconds = 300;

/** A watch that ends earlier is repeated with backoff: the server might end each one immediately. */
const healthyWatchMs = 10_000;

/** Never throws. Ends with the signal, or when a retry makes no sense. */
export async function runFeed(context: FeedContext, subscription: Subscription): Promise<void> {
  const { clock, signal, emit } = context;
  const source = subscription.kind === "watch" ? watchSource(context, subscription) : logSource(context, subscription);
  for (let failures = 0; !signal.aborted;) {
    try {
      const outcome = await source();
      if (outcome === "ended") return;
      failures = outcome === "progress" ? 0 : failures + 1;
    } catch (error) {
      if (signal.aborted) return;
      if (isUnauthorized(error)) return context.onUnauthorized();
      failures++;
      if (isForbidden(error)) return await emit(denied(subscription, error));
      await emit({ id: subscription.id, type: "error", message: textOf(error) });
    }
    if (failures > 0) await sleep(clock, backoffDelay(retryPolicy, failures), signal);
  }
}

/** What one attempt did: after `idle` there is a pause. */
export type Outcome = "ended" | "progress" | "idle";

type Source = () => Promise<Outcome>;

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function denied({ id }: Subscription, error: Error): StreamMessage {
  const missing = missingPermission(error);
  const permission = missing ? permissionText(missing) : "";
  return { id, type: "denied", permission, message: error.message };
}

function watchSource(context: FeedContext, subscription: WatchSubscription): Source {
  const kind = resource(watchable[subscription.resource]);
  let since = subscription.resourceVersion;
  let hasFailed = false;
  return async () => {
    if (hasFailed && since !== undefined) await reportRecovery(context, kind, { subscription, since });
    hasFailed = true;
    since ??= await sendList(context, kind, subscription);
    const startedAt = context.clock.monotonic();
    try {
      since = await sendChanges(context, kind, { subscription, since });
    } catch (error) {
      if (!isExpired(error)) throw error;
      since = undefined;
    }
    hasFailed = false;
    return context.clock.monotonic() - startedAt > healthyWatchMs ? "progress" : "idle";
  };
}

const selection = ({ namespace, name, labelSelector }: WatchSubscription) => ({
  ...(namespace !== undefined && { namespace }),
  ...(labelSelector !== undefined && { labelSelector }),
  ...(name !== undefined && { fieldSelector: `metadata.name=${name}` }),
});

/** Returns the version of the list. */
async function sendList(context: FeedContext, kind: Resource, subscription: WatchSubscription): Promise<string> {
  const { credentials, signal, emit, clock } = context;
  const { id } = subscription;
  const options = { ...selection(subscription), pageSize: limits.pageSize, signal, connect: { userAgent, clock } };
  let resourceVersion = "";
  await emit({ id, type: "reset" });
  for await (const page of listPages(credentials, kind, options)) {
    for (const object of page.items) {
      // Without a version: a page that is disconnected before the end of the list needs a new one.
      await emit({ id, type: "object", change: "ADDED", object: slim(object, subscription), resourceVersion: "" });
    }
    ({ resourceVersion } = page);
  }
  await emit({ id, type: "synced", resourceVersion });
  return resourceVersion;
}

interface From {
  readonly subscription: WatchSubscription;
  readonly since: string;
}

/** A resumed watch may be silent for a minute, in which the page would still show the error. */
async function reportRecovery(context: FeedContext, kind: Resource, { subscription, since }: From): Promise<void> {
  const { credentials, signal, emit, clock } = context;
  const options = { ...selection(subscription), pageSize: 1, signal, connect: { userAgent, attempts: 1, clock } };
  // One object is enough: the API server responds.
  await listPages(credentials, kind, options).next();
  await emit({ id: subscription.id, type: "synced", resourceVersion: since });
}

/** Returns the last version that was sent. */
async function sendChanges(context: FeedContext, kind: Resource, { subscription, since }: From): Promise<string> {
  const { credentials, signal, emit, clock } = context;
  const { id } = subscription;
  const client = connect(credentials, { userAgent, attempts: 1, clock });
  let resourceVersion = since;
  const options = { ...selection(subscription), resourceVersion, signal, serverTimeoutSeconds: watchSeconds };
  for await (const event of client.watch(kind, options)) {
    if (event.type === "BOOKMARK") {
      ({ resourceVersion } = event);
      await emit({ id, type: "synced", resourceVersion });
      continue;
    }
    resourceVersion = event.object.metadata.resourceVersion ?? resourceVersion;
    await emit({ id, type: "object", change: event.type, object: slim(event.object, subscription), resourceVersion });
  }
  return resourceVersion;
}

function logSource(context: FeedContext, subscription: LogSubscription): Source {
  const progress = { since: undefined as string | undefined };
  return async () => await readLog(context, subscription, progress);
}
