/** Writes a run's events to the pod's log, which users read first when a stack has problems. */
import type { RunEvent } from "@pko/records";
import type { RunId } from "@pko/rpc";
import type { Log } from "../system/log.ts";

export function logEvent(log: Log, run: RunId, event: RunEvent): void {
  switch (event.kind) {
    case "step":
      return log.info("step started", { run, step: event.name });
    case "resource":
      return logResource(log, run, event);
    case "diagnostic":
      return log[levels[event.severity]]("program output", { run, text: event.message, urn: event.urn });
    case "policy":
      return log.warn("policy violated", { run, policy: event.policy, enforcement: event.level, text: event.message });
    case "permalink":
      return log.info("Pulumi Cloud link", { run, url: event.url });
    case "summary":
      return log.info("step finished", { run, seconds: event.durationSeconds, changes: JSON.stringify(event.changes) });
    case "notice":
      return log.info("notice", { run, text: event.message });
  }
}

const levels = { debug: "info", info: "info", warning: "warn", error: "error" } as const;

type ResourceEvent = Extract<RunEvent, { kind: "resource" }>;

/** Skips unchanged resources, which would hide the changes. */
function logResource(log: Log, run: RunId, { phase, op, urn, resourceType }: ResourceEvent): void {
  if (op === "same") return;
  const fields = { run, op, type: resourceType, name: urn.slice(urn.lastIndexOf("::") + 2) };
  if (phase === "failed") log.error("resource failed", fields);
  else log.info(phase === "started" ? "resource started" : "resource finished", fields);
}
