/** For tests and benchmarks; the agent itself is the executable of main.ts. */
export * from "./agent.ts";
export * from "./options.ts";
export * from "./system/log.ts";
export * from "./system/redact.ts";
