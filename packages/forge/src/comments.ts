/** Creates a comment, or replaces the text of the one with the same marker. */
import { ForgeError } from "./errors.ts";
import type { Comment } from "./types.ts";

export interface CommentStore {
  /** Oldest first. */
  list(): Promise<readonly FoundComment[]>;
  create(body: string): Promise<string>;
  /** Throws a ForgeError of kind notFound if it was deleted, and unauthorized if it is that of another user. */
  replace(id: string, body: string): Promise<void>;
}

export interface FoundComment {
  readonly id: string;
  readonly body: string;
}

/** Of a pull request, as many are read. More are not written by people. */
export const maxComments = 5000;

/** How a marker is hidden in Markdown. */
export type HiddenMarker = (marker: string) => string;

export const htmlMarker: HiddenMarker = (marker) => `<!-- ${marker} -->`;
/** Bitbucket shows HTML comments, but not the definition of a link that nothing uses. */
export const linkMarker: HiddenMarker = (marker) => `[//]: # (${marker})`;

const markerForm = /^[\w:./-]+$/;

export async function putComment(
  store: CommentStore,
  { marker, body, known }: Comment,
  hide: HiddenMarker,
): Promise<string> {
  if (!markerForm.test(marker)) throw new ForgeError("invalid", "the marker of the comment has other characters");
  const text = `${body.trimEnd()}\n\n${hide(marker)}\n`;
  if (known && (await wasReplaced(store, known, text))) return known;
  // The oldest ones are ours: others could copy the marker only after it was written.
  const marked = (await store.list()).filter(({ id, body: found }) => found.includes(hide(marker)) && id !== known);
  for (const { id } of marked.slice(0, maxMarked)) if (await wasReplaced(store, id, text)) return keptID(id);
  return keptID(await store.create(text));
}

/** In the status of an Update. A comment without an ID is found by its marker. */
const maxID = 128;

const keptID = (id: string): string => (id.length <= maxID ? id : "");

/** A comment for each user whose token was used before. */
const maxMarked = 5;

/**
 * Forges answer 403 for a comment of another user, Bitbucket Data Center 401, and some 404. If the token is wrong instead, or may
 * not write comments, the next request fails, too.
 */
async function wasReplaced(store: CommentStore, id: string, text: string): Promise<boolean> {
  try {
    await store.replace(id, text);
    return true;
  } catch (error) {
    if (error instanceof ForgeError && (error.kind === "notFound" || error.kind === "unauthorized")) return false;
    throw error;
  }
}

const maxDescription = 140;

/** GitHub rejects longer descriptions. */
export const shortDescription = (text: string): string =>
  text.length <= maxDescription ? text : `${text.slice(0, maxDescription - 1).trimEnd()}…`;
