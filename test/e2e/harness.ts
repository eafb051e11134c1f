/** Everything that end-to-end tests share. */
export * from "./harness/agent-logs.ts";
export * from "./harness/classes.ts";
export * from "./harness/cli.ts";
export * from "./harness/cluster.ts";
export * from "./harness/operator.ts";
export * from "./harness/scene.ts";
export * from "./harness/stacks.ts";
export * from "./harness/users.ts";
export * from "./objects.ts";
export * from "./programs.ts";
