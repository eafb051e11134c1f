/** What the operator and the agent share when they ask Git servers: safe addresses, what git is told, why it fails. */
export * from "./access.ts";
export * from "./addresses.ts";
export * from "./environment.ts";
export * from "./explain.ts";
export * from "./http.ts";
export * from "./moved.ts";
export * from "./remote.ts";
export * from "./trust.ts";
