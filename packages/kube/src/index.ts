export * from "./builtin.ts";
export * from "./client.ts";
export * from "./clock.ts";
export * from "./errors.ts";
export * from "./manual-clock.ts";
export * from "./resource.ts";
export * from "./store.ts";
