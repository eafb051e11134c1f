export { serveCloud, type Cloud } from "./server.ts";
export { identityProvider } from "./identity-provider.ts";
export type { Issuer } from "./token-exchange.ts";
