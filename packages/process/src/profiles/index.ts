/** Profiles of a running process, for those who may run commands in its container. */
export * from "./client.ts";
export * from "./server.ts";
