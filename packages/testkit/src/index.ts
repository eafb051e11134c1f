export * from "./api-server.ts";
export * from "./free-port.ts";
export * from "./kubectl.ts";
export * from "./namespace.ts";
export * from "./shared-api-server.ts";
export * from "./wait-for.ts";
