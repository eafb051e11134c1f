export * from "./operator-objects.ts";
export * from "./published.ts";
export * from "./quickstart.ts";
export * from "./rbac.ts";
