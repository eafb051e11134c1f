export { serveCloud, type Cloud, type CloudOptions } from "./server.ts";
export { identityProvider, type IdentityProvider } from "./identity-provider.ts";
export type { Identity } from "./access.ts";
export type { Environment } from "./environments.ts";
export type { CloudStack } from "./stacks.ts";
export type { Issuer, Jwks, Policy } from "./token-exchange.ts";
export type { CloudUpdate } from "./updates.ts";
