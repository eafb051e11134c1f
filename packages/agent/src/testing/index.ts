/** For the tests of other packages: an agent in a separate process, and servers for it to fetch from. */
export * from "./agent-workspace.ts";
export * from "./git-server.ts";
export * from "./ready-port.ts";
export * from "./ssh-keys.ts";
export * from "./tar.ts";
