/** All reads of a Receiver's reconcile. */
import type { Receiver } from "@pko/api";
import { type Client, type Key, type Moment, type Store } from "@pko/kube";

import { versionOf } from "../inputs/reference-poller.ts";
import { findSecret } from "../shared/objects/find-secret.ts";
import type { ActiveReceivers } from "../webhooks/active-receivers.ts";
import { secretKeyOf } from "./secret-key.ts";
import type { ReceiverView, SecretView } from "./view.ts";

export interface ReceiverWorld {
  readonly client: Client;
  readonly receivers: Store<Receiver>;
  readonly active: ActiveReceivers;
  readonly isServed: boolean;
}

/** Undefined for a Receiver that does not exist. */
export async function observeReceiver(
  { client, receivers, active, isServed }: ReceiverWorld,
  key: Key,
  { now, signal }: Moment<never>,
): Promise<ReceiverView | undefined> {
  const receiver = receivers.get(key);
  if (!receiver) return undefined;
  const { namespace = "" } = receiver.metadata;
  const { name } = receiver.spec.secretRef;
  const found = await findSecret(client, { namespace, name }, signal);
  const secretObject = {
    kind: "Secret",
    namespace,
    name,
    version: versionOf(found === "forbidden" ? undefined : found),
  } as const;
  const secret =
    found === "forbidden" ? ({ kind: "forbidden" } as const) : secretView(found?.data, secretKeyOf(receiver));
  return { now, receiver, isServed, secret, secretObject, deliveries: active.deliveriesOf(key) };
}

export function secretView(data: Readonly<Record<string, string>> | undefined, key: string): SecretView {
  if (!data) return { kind: "missing" };
  const value = data[key];
  if (value === undefined) return { kind: "keyMissing" };
  return { kind: "read", bytes: withoutLineBreaks(Buffer.from(value, "base64")) };
}

/** Editors and `echo` add line breaks. The secret stays bytes: it may be binary. */
function withoutLineBreaks(bytes: Buffer): Buffer {
  const isLineBreak = (byte: number): boolean => byte === 0x0a || byte === 0x0d;
  return bytes.subarray(0, bytes.findLastIndex((byte) => !isLineBreak(byte)) + 1);
}
