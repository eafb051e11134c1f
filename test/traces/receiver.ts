/** A collector of OpenTelemetry for tests: it receives traces over HTTP as JSON, and finds out whether they are connected. */
interface KeyValue {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: string; readonly boolValue?: boolean };
}

interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly KeyValue[];
  readonly status?: { readonly code: number; readonly message?: string };
}

interface OtlpRequest {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[] }[];
}

export interface ReceivedSpan extends Omit<OtlpSpan, "attributes"> {
  readonly attributes: Readonly<Record<string, string>>;
}

export interface TraceReceiver extends Disposable {
  /** Variables with which an operator sends its traces here, without delay. */
  readonly environment: Readonly<Record<string, string>>;
  readonly spans: readonly ReceivedSpan[];
  /** The spans of each trace, by its ID. */
  traces(): Map<string, readonly ReceivedSpan[]>;
}

export function traceReceiver(): TraceReceiver {
  const spans: ReceivedSpan[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { resourceSpans } = (await request.json()) as OtlpRequest;
      const received = resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
      spans.push(...received.map(readSpan));
      return Response.json({});
    },
  });
  return {
    environment: {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${server.port}`,
      OTEL_BSP_SCHEDULE_DELAY: "50",
    },
    spans,
    traces: () => Map.groupBy(spans, ({ traceId }) => traceId),
    [Symbol.dispose]: () => void server.stop(true),
  };
}

function readSpan({ attributes, ...span }: OtlpSpan): ReceivedSpan {
  return { ...span, attributes: readAttributes(attributes) };
}

function readAttributes(attributes: readonly KeyValue[]): Record<string, string> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, String(value.stringValue ?? value.intValue ?? value.boolValue)]),
  );
}

/** The names of the spans that cannot be reached from the only root; all of them if there is not exactly one root. */
export function disconnected(trace: readonly ReceivedSpan[]): string[] {
  const roots = trace.filter(({ parentSpanId }) => parentSpanId === undefined);
  const reached = new Set(roots.length === 1 ? roots.map(({ spanId }) => spanId) : []);
  for (let before = -1; before < reached.size;) {
    before = reached.size;
    for (const { spanId, parentSpanId } of trace) if (reached.has(parentSpanId ?? "")) reached.add(spanId);
  }
  return trace.filter(({ spanId }) => !reached.has(spanId)).map(({ name }) => name);
}
