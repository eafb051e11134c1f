/** The path of each Receiver. It is derived from the UID alone, which nobody can guess, and does not reveal the UID. */
import type { Receiver } from "@pko/api";

import { contentHash } from "../shared/digest.ts";

export const pathPrefix = "/hooks/";

export const pathOf = ({ metadata }: Pick<Receiver, "metadata">): string =>
  `${pathPrefix}${contentHash(["receiver", metadata.uid ?? ""])}`;

export const receiverPathIndex = "path";

/** For the reflector of Receivers. */
export const receiverIndexers = { [receiverPathIndex]: (receiver: Receiver): string[] => [pathOf(receiver)] };
