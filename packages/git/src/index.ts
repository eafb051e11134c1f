/** What the operator and the agent share to access Git servers: checked addresses, git's environment, and its errors. */
export * from "./access.ts";
export * from "./addresses.ts";
export * from "./connections.ts";
export * from "./environment.ts";
export * from "./explain.ts";
export * from "./globs.ts";
export * from "./http.ts";
export * from "./ls-refs.ts";
export * from "./moved.ts";
export * from "./proxy.ts";
export * from "./remote.ts";
export * from "./tree-diff.ts";
export * from "./trust.ts";
export { errorCode, retryAfter, type LsRefsOptions, type UploadPack } from "./upload-pack.ts";
