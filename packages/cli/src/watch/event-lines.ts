/** Lines for output that is not a terminal: one for each event that matters, as it happens. Pure. */
import { urnName, urnType, type NumberedEvent, type RunEvent } from "@pko/records";

import { printable } from "../output/wrap.ts";
import { took } from "../runs/resource-blocks.ts";

/** Undefined for an event that is not shown. */
export function eventLine({ time, event }: NumberedEvent): string | undefined {
  const text = eventText(event);
  return text === undefined
    ? undefined
    : printable(`${timeOfDay(time)}  ${text}`).replaceAll(/\n(?=.)/g, "\n          ");
}

const timeOfDay = (time: string): string => time.slice(11, 19);

function eventText(event: RunEvent): string | undefined {
  switch (event.kind) {
    case "step":
      return `${event.name} started`;
    case "resource": {
      if (event.phase === "started" || (event.op === "same" && event.phase === "finished")) return undefined;
      const failed = event.phase === "failed" ? " failed" : "";
      const time = took(event.durationMs);
      return `${event.op}${failed}  ${event.resourceType} ${urnName(event.urn)}${time && `  ${time}`}`;
    }
    case "diagnostic":
      return event.severity === "debug"
        ? undefined
        : `${event.severity}  ${about(event.urn)}${event.message.trimEnd()}`;
    case "policy":
      return `policy  ${about(event.urn)}${event.policy} (${event.level}): ${event.message}`;
    case "permalink":
      return `page  ${event.url}`;
    case "notice":
      return `notice  ${event.message}`;
    case "summary":
      return undefined;
    default:
      event satisfies never;
      return undefined;
  }
}

const about = (urn: string | undefined): string => (urn ? `${urnType(urn)} ${urnName(urn)}: ` : "");
