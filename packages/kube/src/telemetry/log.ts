/** The logger, for the runtime and for all who use it. */
export * from "@pko/process/log";
