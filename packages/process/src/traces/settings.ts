/**
 * The settings of traces, from the standard variables of OpenTelemetry. Traces are off unless an endpoint or an exporter is
 * named: the standard's default, a collector on the same machine, makes no sense in a pod.
 */
import type { Attributes } from "./span.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface TraceSettings {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A file with the certificate of the collector's CA. */
  readonly certificate?: string;
  /** With gzip. */
  readonly isCompressed: boolean;
  readonly timeoutMs: number;
  readonly resource: Attributes;
  /** The share of traces that are recorded, from 0 to 1. */
  readonly ratio: number;
  readonly queueSize: number;
  readonly batchSize: number;
  readonly delayMs: number;
}

export interface ReadSettings {
  /** Undefined if traces are off. */
  readonly settings?: TraceSettings;
  /** Variables that are ignored, and why. */
  readonly problems: readonly string[];
}

const defaultEndpoint = "http://localhost:4318";

export function readTraceSettings(environment: Environment): ReadSettings {
  const reader = new Variables(environment);
  const isOn = reader.one("OTEL_TRACES_EXPORTER") !== undefined || reader.exporter("ENDPOINT") !== undefined;
  const isDisabled = reader.one("OTEL_SDK_DISABLED")?.toLowerCase() === "true";
  if (!isOn || isDisabled || reader.one("OTEL_TRACES_EXPORTER") === "none") return { problems: [] };
  const url = endpoint(reader);
  const unsupported = url === undefined ? notUrl : unsupportedExporter(reader);
  if (url === undefined || unsupported !== undefined) return { problems: [unsupported ?? notUrl] };
  reader.choice("PROTOCOL", ["http/json", "http/protobuf"]);
  const certificate = reader.exporter("CERTIFICATE");
  const queueSize = reader.positive("OTEL_BSP_MAX_QUEUE_SIZE", 2048);
  const settings: TraceSettings = {
    url,
    headers: {
      ...pairs(reader.one("OTEL_EXPORTER_OTLP_HEADERS")),
      ...pairs(reader.one("OTEL_EXPORTER_OTLP_TRACES_HEADERS")),
    },
    ...(certificate !== undefined && { certificate }),
    isCompressed: reader.choice("COMPRESSION", ["none", "gzip"]) === "gzip",
    timeoutMs: reader.positive(reader.exporterName("TIMEOUT"), 10_000),
    resource: resourceAttributes(reader),
    ratio: samplingRatio(reader),
    queueSize,
    batchSize: Math.min(queueSize, reader.positive("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512)),
    delayMs: reader.positive("OTEL_BSP_SCHEDULE_DELAY", 5000),
  };
  return { settings, problems: reader.problems };
}

/** Reads variables, and collects those that it ignores. An empty one counts as unset. */
class Variables {
  readonly problems: string[] = [];
  readonly #environment: Environment;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  one(name: string): string | undefined {
    return this.#environment[name]?.trim() || undefined;
  }

  /** A variable for traces takes precedence over the one for all signals. */
  exporterName(name: string): string {
    const forTraces = `OTEL_EXPORTER_OTLP_TRACES_${name}`;
    return this.one(forTraces) === undefined ? `OTEL_EXPORTER_OTLP_${name}` : forTraces;
  }

  exporter(name: string): string | undefined {
    return this.one(this.exporterName(name));
  }

  /** One of the values that are supported, and undefined for others. */
  choice(name: string, supported: readonly string[]): string | undefined {
    const value = this.exporter(name);
    if (value === undefined || supported.includes(value)) return value;
    this.problems.push(`${this.exporterName(name)} is not ${supported.join(" or ")}`);
    return undefined;
  }

  /** An integer: less than one span in a request would never empty the queue. */
  positive(name: string, fallback: number): number {
    const text = this.one(name);
    const value = Number(text ?? fallback);
    if (Number.isSafeInteger(value) && value > 0) return value;
    this.problems.push(`${name} is not a positive integer`);
    return fallback;
  }
}

const notUrl = "the endpoint of OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https URL";

function unsupportedExporter(reader: Variables): string | undefined {
  const exporter = reader.one("OTEL_TRACES_EXPORTER") ?? "otlp";
  if (exporter !== "otlp") return `OTEL_TRACES_EXPORTER is ${exporter}, and only otlp is supported`;
  const isGrpc = reader.exporter("PROTOCOL") === "grpc";
  return isGrpc
    ? "OTEL_EXPORTER_OTLP_PROTOCOL is grpc, and only http/json is supported; use the collector's port for HTTP, usually 4318"
    : undefined;
}

/** The path `v1/traces` is part of an endpoint for traces, and is added to one for all signals. */
function endpoint(reader: Variables): string | undefined {
  const forAll = reader.one("OTEL_EXPORTER_OTLP_ENDPOINT") ?? defaultEndpoint;
  const text = reader.one("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") ?? `${forAll.replace(/\/+$/, "")}/v1/traces`;
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) ? text : undefined;
}

/** `key=value,key=value`, percent-encoded, as for headers and resource attributes. */
function pairs(text = ""): Record<string, string> {
  const entries = text.split(",").flatMap((pair) => {
    const [key, ...value] = pair.split("=");
    return key?.trim() && value.length > 0 ? [[key.trim(), decoded(value.join("=").trim())] as const] : [];
  });
  return Object.fromEntries(entries);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function resourceAttributes(reader: Variables): Attributes {
  const name = reader.one("OTEL_SERVICE_NAME");
  return { ...pairs(reader.one("OTEL_RESOURCE_ATTRIBUTES")), ...(name !== undefined && { "service.name": name }) };
}

/** Every trace starts here, so a sampler that is based on the parent samples like its root. */
function samplingRatio(reader: Variables): number {
  const sampler = reader.one("OTEL_TRACES_SAMPLER") ?? "parentbased_always_on";
  switch (sampler.replace(/^parentbased_/, "")) {
    case "always_on":
      return 1;
    case "always_off":
      return 0;
    case "traceidratio":
      return ratio(reader);
    default:
      reader.problems.push(`OTEL_TRACES_SAMPLER is ${sampler}, which is not supported`);
      return 1;
  }
}

function ratio(reader: Variables): number {
  const value = Number(reader.one("OTEL_TRACES_SAMPLER_ARG") ?? "1");
  if (value >= 0 && value <= 1) return value;
  reader.problems.push("OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1");
  return 1;
}

/** Decided by the ID alone, so that every process decides the same. */
export function isSampled(traceId: string, ratio: number): boolean {
  return Number.parseInt(traceId.slice(-8), 16) < ratio * 2 ** 32;
}
