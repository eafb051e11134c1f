export * from "./clock.ts";
export * from "./resource.ts";
export * from "./controller/backoff.ts";
export * from "./telemetry/log.ts";
