export type { SignIn } from "./callers.ts";
export { startConsole, type Console, type ConsoleOptions } from "./console.ts";
export { runConsole } from "./run.ts";
