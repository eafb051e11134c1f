export * from "./kinds.ts";
