/**
 * What has happened and is not done, for each Notification: collected from the watches while this replica leads. Only in memory:
 * an inbox that is opened reads everything after the Notification's cursor from the stores.
 */
import { isComplete, type Notification, type NotificationCursor, type Stack, type Update } from "@pko/api";
import type { WorkLeft } from "@pko/git";
import { keyOf, namespaceOf, systemClock, type Change, type Clock, type Key, type Store } from "@pko/kube";

import { parseTimestamp } from "../../shared/parse-timestamp.ts";
import { workspaceIndex, workspaceKeyOf } from "../../shared/updates.ts";
import { cursorAt, cursorIn, isNewTo, lateMs } from "./cursor.ts";
import { occurrencesOfStack, occurrencesOfUpdate } from "./derive.ts";
import { occurrenceFilter, type OccurrenceFilter } from "./filter.ts";
import { byTime, maxAgeMs, type Occurrence } from "./occurrence.ts";
import { restored } from "./unsent.ts";

export interface InboxStores {
  readonly stacks: Store<Stack>;
  /** With `updateIndexers`. */
  readonly updates: Store<Update>;
}

export interface Inbox {
  /** What is to be sent, the oldest first. */
  readonly pending: readonly Occurrence[];
  /** How long the first of them has been known, in milliseconds; 0 if there is none. */
  readonly waitedMs: number;
  /** What did not fit. */
  readonly overflow: readonly Occurrence[];
}

const emptyInbox: Inbox = { pending: [], waitedMs: 0, overflow: [] };

/** About a megabyte. */
export const maxPending = 2000;

/**
 * How much matching of globs one event takes for all Notifications of its namespace (4 ms), and one pass for all its events (31 ms):
 * tenants choose the globs, and nothing else runs in the meantime. What is left of an event is matched in the next pass of each
 * Notification; what is left of a pass is reported.
 */
const maxWork = { event: 2_000_000, pass: 16_000_000 };

interface Entry {
  /** As the Notification was in the last pass. */
  rules: Rules;
  readonly pending: Map<string, { readonly occurrence: Occurrence; readonly seenAt: number }>;
  readonly overflow: Map<string, Occurrence>;
}

export class Inboxes {
  readonly #stores: InboxStores;
  readonly #clock: Clock;
  /** By namespace. */
  readonly #entries = new Map<string, Map<Key, Entry>>();

  constructor(stores: InboxStores, clock: Clock = systemClock) {
    this.#stores = stores;
    this.#clock = clock;
  }

  /** Nothing is collected for a Notification that is suspended. One without a cursor begins now. */
  read(notification: Notification): Inbox {
    const now = this.#clock.now();
    const cursor = cursorIn(notification, now) ?? cursorAt(now);
    const key = keyOf(notification);
    if (notification.spec.suspend) {
      this.forget(key);
      return emptyInbox;
    }
    const known = this.#entryOf(key);
    const rules = rulesOf(notification, cursor, known?.rules);
    const work = { left: maxWork.pass };
    const entry: Entry = known ?? { rules, pending: new Map(), overflow: new Map() };
    entry.rules = rules;
    if (!known) this.#open(notification, { entry, cursor, work });
    const isOpen = (each: Occurrence): boolean => rules.isNew(each) && rules.matches(each, work);
    for (const [id, { occurrence }] of entry.pending) if (!isOpen(occurrence)) entry.pending.delete(id);
    for (const [id, occurrence] of entry.overflow) if (!isOpen(occurrence)) entry.overflow.delete(id);
    return this.#view(entry);
  }

  /** The Notifications that a change of a Stack concerns. */
  ofStack = ({ key, after }: Change<Stack>): Key[] => (after ? this.#add(key, () => occurrencesOfStack(after)) : []);

  /** The Notifications that a change of an Update concerns. A change of one that had ended before is no news. */
  ofUpdate = (change: Change<Update>): Key[] =>
    this.#add(change.key, () => {
      const { before, after } = change;
      if (!after || (before && isComplete(before))) return [];
      return occurrencesOfUpdate(after, this.#stores.stacks.get(workspaceKeyOf(after)));
    });

  /** The Notification is deleted or suspended. */
  forget(key: Key): void {
    const namespace = namespaceOf(key);
    const entries = this.#entries.get(namespace);
    entries?.delete(key);
    if (entries?.size === 0) this.#entries.delete(namespace);
  }

  /** This replica no longer leads. */
  clear(): void {
    this.#entries.clear();
  }

  #entryOf = (key: Key): Entry | undefined => this.#entries.get(namespaceOf(key))?.get(key);

  #open(notification: Notification, { entry, cursor, work }: Opening): void {
    const key = keyOf(notification);
    const namespace = namespaceOf(key);
    const entries = this.#entries.get(namespace) ?? new Map<Key, Entry>();
    this.#entries.set(namespace, entries.set(key, entry));
    const recorded = (notification.status?.unsent ?? []).flatMap(restored);
    for (const each of [...recorded, ...this.#existing(namespace, cursor)]) this.#put(entry, each, work);
  }

  /** An Update that has ended is archived, and reading it is expensive: only those of Stacks that changed recently are read. */
  #existing(namespace: string, { time }: NotificationCursor): Occurrence[] {
    const { stacks, updates } = this.#stores;
    const from = Math.max(parseTimestamp(time) ?? 0, this.#clock.now() - maxAgeMs) - lateMs;
    const own = stacks.list().filter(({ metadata }) => metadata.namespace === namespace);
    return own.flatMap((stack) => {
      const { currentUpdate, lastUpdate } = stack.status ?? {};
      const isRecent = currentUpdate !== undefined || (parseTimestamp(lastUpdate?.lastResyncTime) ?? 0) >= from;
      const key = keyOf(stack);
      const found = isRecent ? updates.byIndex(workspaceIndex, key) : updates.activeByIndex(workspaceIndex, key);
      return occurrencesOfStack(stack).concat(found.flatMap((update) => occurrencesOfUpdate(update, stack)));
    });
  }

  /** Derives only if a Notification of the namespace is interested. */
  #add(changed: Key, derive: () => readonly Occurrence[]): Key[] {
    const entries = this.#entries.get(namespaceOf(changed));
    if (!entries) return [];
    const occurrences = derive();
    if (occurrences.length === 0) return [];
    const work = { left: maxWork.event };
    return [...entries].flatMap(([key, entry]) =>
      occurrences.filter((each) => this.#put(entry, each, work)).length > 0 ? [key] : [],
    );
  }

  #put({ rules, pending, overflow }: Entry, occurrence: Occurrence, work: WorkLeft): boolean {
    const { id, time } = occurrence;
    if (pending.has(id) || overflow.has(id) || this.#clock.now() - time > maxAgeMs) return false;
    if (!rules.isNew(occurrence) || !rules.matches(occurrence, work)) return false;
    pending.set(id, { occurrence, seenAt: this.#clock.monotonic() });
    const [oldest] = pending.values();
    if (pending.size > maxPending && oldest) {
      pending.delete(oldest.occurrence.id);
      overflow.set(oldest.occurrence.id, oldest.occurrence);
    }
    return true;
  }

  #view({ pending, overflow }: Entry): Inbox {
    const [first] = pending.values();
    return {
      pending: [...pending.values()].map(({ occurrence }) => occurrence).toSorted(byTime),
      waitedMs: first ? this.#clock.monotonic() - first.seenAt : 0,
      overflow: [...overflow.values()],
    };
  }
}

interface Opening {
  readonly entry: Entry;
  readonly cursor: NotificationCursor;
  readonly work: WorkLeft;
}

interface Rules {
  /** Changes with the filter. */
  readonly version: string;
  readonly isNew: (occurrence: Occurrence) => boolean;
  readonly matches: OccurrenceFilter;
}

/** Passes are frequent, and to compile the globs of a filter may take milliseconds: it is kept while it is the same. */
function rulesOf({ metadata, spec }: Notification, cursor: NotificationCursor, former: Rules | undefined): Rules {
  const version = `${metadata.uid} ${metadata.generation}`;
  const matches = former?.version === version ? former.matches : occurrenceFilter(spec.filter);
  return { version, isNew: isNewTo(cursor), matches };
}
