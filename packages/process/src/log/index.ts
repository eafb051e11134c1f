/** The logger of operator, agent and console: one schema for all of them. */
export * from "./levels.ts";
export * from "./logger.ts";
