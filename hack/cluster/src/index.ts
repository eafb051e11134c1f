export * from "./tools.ts";
export * from "./pki.ts";
