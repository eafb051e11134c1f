/** The APIs of forges, such as GitHub and GitLab, behind one interface: statuses of commits, pull requests and their comments. */
export * from "./commit-hashes.ts";
export * from "./errors.ts";
export * from "./forge.ts";
export * from "./http.ts";
export * from "./targets.ts";
export * from "./types.ts";
