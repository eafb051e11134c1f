/** Where spans go: to the collector that the variables of OpenTelemetry name. */
import { readFileSync } from "node:fs";

import { version } from "@pko/api";
import type { Logger, Registry } from "@pko/kube";
import { isSampled, readTraceSettings, spanExporter, type Attributes, type Span } from "@pko/process/traces";
import { maskCredentials } from "@pko/records";

import { truncate } from "../truncate.ts";

export interface Tracer {
  /** Decided by the ID alone, so that every process decides the same. */
  isSampled(traceId: string): boolean;
  /** Never waits, and never fails. */
  record(span: Span): void;
  flush(): Promise<void>;
}

interface TracerOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly podName: string;
  readonly log: Logger;
  readonly metrics: Registry;
}

const scope = { name: "pulumi-kubernetes-operator", version };
/** How long a stop waits for a collector. */
const flushMs = 2000;

/** Undefined if traces are off. */
export function createTracer({ environment, podName, log: parent, metrics }: TracerOptions): Tracer | undefined {
  const log = parent.child({ logger: "traces" });
  const { settings, problems } = readTraceSettings(environment);
  for (const problem of problems) log.warn("a setting of traces is ignored", { problem });
  if (!settings) return undefined;
  const { ratio } = settings;
  const counts = countSpans(metrics);
  const exporter = spanExporter({
    settings,
    origin: { resource: { ...ownResource(podName), ...settings.resource }, scope },
    ca: readCertificate(settings.certificate, log),
    ...counts,
    onState(problem) {
      if (problem === undefined) log.info("traces can be sent again");
      else log.warn("traces cannot be sent; updates continue without them", { problem });
    },
  });
  log.info("traces are sent", { endpoint: new URL(settings.url).origin });
  return {
    isSampled: (traceId) => isSampled(traceId, ratio),
    record(span) {
      if (isInTime(span)) exporter.add(withoutSecrets(span));
      else counts.onDropped("invalid", 1);
    },
    flush: () => exporter.flush(flushMs),
  };
}

/** An operator without traces is better than none. */
function readCertificate(file: string | undefined, log: Logger): string | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    log.warn("a setting of traces is ignored", { problem: `the certificate ${file} cannot be read`, error });
    return undefined;
  }
}

const ownResource = (podName: string): Attributes => ({
  "service.name": scope.name,
  "service.version": version,
  "k8s.pod.name": podName,
});

function countSpans(metrics: Registry) {
  const exported = metrics.counter({
    name: "trace_spans_exported_total",
    help: "Spans that the collector has accepted.",
  });
  const dropped = metrics.counter({
    name: "trace_spans_dropped_total",
    help: "Spans that were lost, by reason: queueFull, unreachable, rejected or invalid.",
    labels: ["reason"],
  });
  for (const reason of ["queueFull", "unreachable", "rejected", "invalid"]) dropped.increment({ reason }, 0);
  return {
    onExported: (count: number) => exported.increment({}, count),
    onDropped: (reason: string, count: number) => dropped.increment({ reason }, count),
  };
}

/** In nanoseconds, a time has to fit into 64 bits. */
const maxMs = 2 ** 63 / 1e6;

/** Agents report times. One that is out of range would make the collector reject a request with the spans of others. */
const isInTime = ({ startMs, endMs }: Span): boolean => [startMs, endMs].every((ms) => ms >= 0 && ms < maxMs);

const maxTextChars = 1024;

/** Known secrets were masked by the agent. What looks like a credential is masked here, as in records. */
function withoutSecrets(span: Span): Span {
  const { name, attributes = {}, error } = span;
  const clean = Object.entries(attributes).map(([key, value]) => [
    key,
    typeof value === "string" ? cleanText(value) : value,
  ]);
  return {
    ...span,
    name: cleanText(name),
    attributes: Object.fromEntries(clean) as Attributes,
    ...(error !== undefined && { error: cleanText(error) }),
  };
}

const cleanText = (text: string): string => truncate(maskCredentials(text), maxTextChars);
