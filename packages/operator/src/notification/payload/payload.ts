/** The body of a request for a list of occurrences, in the format of the Notification. Pure. */
import type { NotificationType } from "@pko/api";

import type { Occurrence } from "../occurrences/occurrence.ts";
import { cloudEvents } from "./cloud-events.ts";
import { slackMessage } from "./slack.ts";
import { teamsMessage } from "./teams.ts";
import { digest, type Origin } from "./text.ts";

export interface Payload {
  readonly contentType: string;
  readonly body: string;
}

const json = (body: object): Payload => ({ contentType: "application/json", body: JSON.stringify(body) });

export function payloadFor(type: NotificationType, occurrences: readonly Occurrence[], origin: Origin): Payload {
  switch (type) {
    case "CloudEvents":
      return cloudEvents(occurrences, origin);
    case "Slack":
      return json(slackMessage(digest(occurrences, origin)));
    case "Teams":
      return json(teamsMessage(digest(occurrences, origin)));
  }
}

/** A message to a chat has the counts of all; a batch of CloudEvents has every event, and sinks limit its size. */
const maxBatch = 1000;

export const batchFor = (type: NotificationType, pending: readonly Occurrence[]): readonly Occurrence[] =>
  type === "CloudEvents" ? pending.slice(0, maxBatch) : pending;
