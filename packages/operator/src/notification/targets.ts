/** Where Notifications send their messages: read from the Secret when that has changed, and kept in memory. */
import { createSecureContext } from "node:tls";

import type { Notification } from "@pko/api";
import { keyOf, type Client, type Key } from "@pko/kube";

import { versionOf, type PolledObject } from "../inputs/reference-poller.ts";
import { isToken } from "../shared/is-token.ts";
import { findSecret } from "../shared/objects/find-secret.ts";
import type { TargetView } from "./view.ts";

export interface ReadTarget {
  readonly view: TargetView;
  readonly secretObject?: PolledObject;
}

interface Known extends ReadTarget {
  /** The Notification that it was read for. One that is created again begins with the same generation. */
  readonly uid: string;
  readonly generation: number;
}

/** While many Stacks fail, a Notification is reconciled often: it does not read its Secret each time. */
export class Targets {
  readonly #client: Client;
  readonly #known = new Map<Key, Known>();

  constructor(client: Client) {
    this.#client = client;
  }

  async read(notification: Notification, signal: AbortSignal): Promise<ReadTarget> {
    const key = keyOf(notification);
    const { uid = "", generation = 0 } = notification.metadata;
    const known = this.#known.get(key);
    if (known?.uid === uid && known.generation === generation) return known;
    const found = await this.#find(notification, signal);
    this.#known.set(key, { ...found, uid, generation });
    return found;
  }

  /** The next pass reads the Secret. */
  forget(key: Key): void {
    this.#known.delete(key);
  }

  /** This replica no longer leads. */
  clear(): void {
    this.#known.clear();
  }

  async #find({ metadata, spec }: Notification, signal: AbortSignal): Promise<ReadTarget> {
    const { secretRef, url } = spec;
    if (!secretRef) return { view: targetIn(undefined, url) };
    const ref = { namespace: metadata.namespace ?? "", name: secretRef.name };
    const found = await findSecret(this.#client, ref, signal);
    const secret = found === "forbidden" ? undefined : found;
    const secretObject = { kind: "Secret", ...ref, version: versionOf(secret) } as const;
    if (found === "forbidden") return { view: { kind: "secretForbidden" }, secretObject };
    return { view: secret ? targetIn(secret.data ?? {}, url) : { kind: "secretMissing" }, secretObject };
  }
}

/** The URL in the spec prevails over the one in the Secret, which then only has the token or the CAs. */
export function targetIn(data: Readonly<Record<string, string>> | undefined, specUrl: string | undefined): TargetView {
  const text = (key: string): string | undefined => {
    const value = data?.[key];
    return value === undefined ? undefined : Buffer.from(value, "base64").toString("utf8").trim() || undefined;
  };
  const [urlText, token, ca] = [specUrl ?? text("url"), text("token"), text("caCert")];
  if (urlText === undefined) return { kind: "urlMissing" };
  const url = URL.parse(urlText);
  if (!url || !["https:", "http:"].includes(url.protocol) || url.username !== "" || url.password !== "") {
    return { kind: "urlInvalid" };
  }
  if (token !== undefined && !isToken(token)) return { kind: "tokenInvalid" };
  if (ca !== undefined && !isPem(ca)) return { kind: "caInvalid" };
  return { kind: "usable", target: { url, ...(token !== undefined && { token }), ...(ca !== undefined && { ca }) } };
}

function isPem(text: string): boolean {
  if (!text.includes("-----BEGIN CERTIFICATE-----")) return false;
  try {
    createSecureContext({ ca: text });
    return true;
  } catch {
    return false;
  }
}
