/**
 * The protocol between operator and agent, and what both sides share. The operator's side is `@pko/rpc/client` and
 * `@pko/rpc/pki`, the agent's side is `@pko/rpc/server`.
 */
export * from "./canonical-json.ts";
export * from "./check.ts";
export * from "./contract.ts";
export * from "./errors.ts";
export * from "./identity.ts";
export * from "./info.ts";
export * from "./is-record.ts";
export * from "./limits.ts";
export * from "./lines.ts";
export * from "./pause.ts";
export * from "./pod-environment.ts";
export * from "./prepare.ts";
export * from "./is-record.ts";
export * from "./run.ts";
export * from "./source.ts";
export * from "./tls.ts";
export * from "./v1.ts";
export * from "./versions.ts";
