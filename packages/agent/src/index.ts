/** For tests and benchmarks; the agent's executable is main.ts. */
export * from "./agent.ts";
export * from "./options.ts";
export * from "./system/log.ts";
export * from "./system/redact.ts";
