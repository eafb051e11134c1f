export * from "./client.ts";
export * from "./clock.ts";
export * from "./resource.ts";
export * from "./store.ts";
