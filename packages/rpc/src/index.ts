/**
 * The protocol between operator and agent, and what both sides share. The operator's side is `@pko/rpc/client` and
 * `@pko/rpc/pki`, the agent's side is `@pko/rpc/server`.
 */
export * from "./json/canonical-json.ts";
export * from "./json/check.ts";
export * from "./json/is-record.ts";
export * from "./contract.ts";
export * from "./errors.ts";
export * from "./tls/identity.ts";
export * from "./info.ts";
export * from "./limits.ts";
export * from "./transport/lines.ts";
export * from "./transport/pause.ts";
export * from "./pod-environment.ts";
export * from "./prepare.ts";
export * from "./record.ts";
export * from "./run.ts";
export * from "./source.ts";
export * from "./tls/tls.ts";
export * from "./versions/v1.ts";
export * from "./versions/versions.ts";
