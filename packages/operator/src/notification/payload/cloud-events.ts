/** CloudEvents 1.0 in JSON: structured mode for one event, batched mode for several. Pure. docs/notifications.md has the schema. */
import { stackKind } from "@pko/api";
import { timestamp } from "@pko/kube";

import { severityOf, type Occurrence } from "../occurrences/occurrence.ts";
import { actionFor, type Origin } from "./text.ts";
import type { Payload } from "./payload.ts";

export function cloudEvents(occurrences: readonly Occurrence[], origin: Origin): Payload {
  const events = occurrences.map((each) => cloudEvent(each, origin));
  return events.length === 1
    ? { contentType: "application/cloudevents+json; charset=utf-8", body: JSON.stringify(events[0]) }
    : { contentType: "application/cloudevents-batch+json; charset=utf-8", body: JSON.stringify(events) };
}

function cloudEvent(occurrence: Occurrence, origin: Origin): object {
  const { id, time, kind, stack, message, update, operation, permalink } = occurrence;
  const { namespace, clusterName } = origin;
  const command = actionFor(occurrence, origin);
  return {
    specversion: "1.0",
    id,
    source: `/apis/${stackKind.apiVersion}/namespaces/${namespace}/${stackKind.plural}/${stack}`,
    type: `com.pulumi.kubernetes.stack.${kebabCase(kind)}`,
    subject: stack,
    time: timestamp(time),
    datacontenttype: "application/json",
    data: {
      kind,
      severity: severityOf(occurrence),
      ...(clusterName !== undefined && { cluster: clusterName }),
      namespace,
      stack,
      ...(update !== undefined && { update }),
      ...(operation !== undefined && { operation }),
      message,
      ...(permalink !== undefined && { permalink }),
      ...(command !== undefined && { command }),
    },
  };
}

const kebabCase = (name: string): string => name.replaceAll(/(?!^)[A-Z]/g, (letter) => `-${letter}`).toLowerCase();
