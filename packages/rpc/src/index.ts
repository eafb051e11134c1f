/** The agent's contract, and what both ends share. The ends themselves: `@pko/rpc/client`, `/server`; `/pki` is the operator's. */
export * from "./check.ts";
export * from "./contract.ts";
export * from "./errors.ts";
export * from "./identity.ts";
export * from "./info.ts";
export * from "./limits.ts";
export * from "./lines.ts";
export * from "./pod-environment.ts";
export * from "./prepare.ts";
export * from "./progress.ts";
export * from "./run.ts";
export * from "./source.ts";
export * from "./tls.ts";
export * from "./v1.ts";
export * from "./versions.ts";
