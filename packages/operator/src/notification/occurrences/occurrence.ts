/** What a Notification reports: something that happened to a Stack once. */
import { notificationKinds, type OccurrenceKind, type Severity } from "@pko/api";

import { contentHash } from "../../shared/digest.ts";
import { truncate } from "../../shared/truncate.ts";

export interface Occurrence {
  /** The same whenever the occurrence is derived again: 32 hex digits. */
  readonly id: string;
  readonly kind: OccurrenceKind;
  /** In milliseconds since the epoch, in whole seconds: as the operator recorded it in a condition. */
  readonly time: number;
  readonly stack: string;
  /** Why it happened, or what was changed. */
  readonly message: string;
  readonly update?: string;
  readonly operation?: string;
  readonly permalink?: string;
}

/** After this time, an occurrence is no news. */
export const maxAgeMs = 3_600_000;

/** What identifies an occurrence, whatever its texts are. */
interface Identity {
  readonly uid: string;
  /** Distinguishes occurrences of one kind and object. */
  readonly at?: string;
}

/** Chats show a few lines, and a thousand occurrences must fit into memory. */
const maxMessage = 300;

export function occurrence({ uid, at = "" }: Identity, facts: Omit<Occurrence, "id">): Occurrence {
  const { message, permalink, ...rest } = facts;
  return {
    id: contentHash([rest.kind, uid, at]),
    ...rest,
    message: truncate(oneLine(message), maxMessage),
    ...(permalink !== undefined && isWebUrl(permalink) && { permalink }),
  };
}

export const severityOf = ({ kind }: Pick<Occurrence, "kind">): Severity => notificationKinds[kind];

/** Control characters include those that reorder text. */
const oneLine = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();

const maxUrl = 1024;

/** The URL comes from the agent's pod, in which users' programs run. */
function isWebUrl(text: string): boolean {
  const url = text.length <= maxUrl ? URL.parse(text) : null;
  return url !== null && ["https:", "http:"].includes(url.protocol) && url.username === "" && url.password === "";
}

export const byTime = (a: Occurrence, b: Occurrence): number => a.time - b.time || (a.id < b.id ? -1 : 1);
