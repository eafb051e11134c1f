/** What the operator and the agent share when they ask Git servers: which addresses are safe, and what git is told. */
export * from "./addresses.ts";
export * from "./environment.ts";
