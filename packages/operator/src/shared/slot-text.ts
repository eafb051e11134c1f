/** What a Stack, a Workspace or an Update reports while it waits for a slot. */
import type { WaitingForSlot } from "./channels/slots.ts";

const freeSlot = "a free slot";

/** In `status.waiting`. */
export const placeText = ({ position, total }: WaitingForSlot): string =>
  `${freeSlot} (position ${position} of ${total})`;

/** Whether the text is one of `placeText`, at any position. */
export const isPlaceText = (text: string): boolean => text.startsWith(`${freeSlot} (`);

export const limitText = ({ limitOf, limit }: WaitingForSlot): string =>
  limitOf === "operator"
    ? `all ${limit} slots of the operator are in use (controller.maxConcurrentUpdates)`
    : `all ${limit} slots of the namespace are in use (controller.maxConcurrentUpdatesPerNamespace, or maxConcurrentUpdates of the WorkspaceClass)`;

export const queueText = ({ position, total }: WaitingForSlot): string =>
  `position ${position} of ${total} in the queue`;
