/** The texts of the rules: what conditions, events and Updates of a Stack report. Pure: from data to text. */
export * from "./messages/approvals.ts";
export * from "./messages/deletion.ts";
export * from "./messages/dependencies.ts";
export * from "./messages/drift.ts";
export * from "./messages/inputs.ts";
export * from "./messages/pauses.ts";
export * from "./messages/results.ts";
export * from "./messages/updates.ts";
export * from "./messages/workspace.ts";
export * from "./messages/workspace-class.ts";
