/** What browsers need of the API: the types of all kinds, and the constants and pure functions that use no schema. */
export type * from "./index.ts";
export * from "./annotations.ts";
export * from "./conditions.ts";
export * from "./labels.ts";
export * from "./operator.ts";
export * from "./shared/time-text.ts";
export * from "./stack/state.ts";
export * from "./without-password.ts";
export { approvalKind } from "./kinds.ts";
export * from "./workspace/names.ts";
export { pulumiContainer } from "./workspace/pod-facts.ts";
