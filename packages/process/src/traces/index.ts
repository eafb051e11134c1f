/** Traces: spans, the settings for them, and what sends them to a collector of OpenTelemetry. */
export * from "./exporter.ts";
export * from "./settings.ts";
export * from "./span.ts";
