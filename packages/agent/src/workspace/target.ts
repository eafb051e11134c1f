/**
 * Finds what a run of a stack needs. Listed stacks were prepared with the workspace. If the workspace lists none, a run
 * may use any existing stack, with the settings file in the source; the stack is never created.
 */
import type { StartRequest } from "@pko/rpc";
import { done, type Outcome } from "../outcome.ts";
import { loadProject } from "../pulumi/project/project.ts";
import { configureStack, stackPaths, type StackContext } from "../pulumi/project/stack.ts";
import { isDirectory } from "../system/files.ts";
import type { Ready, RunTarget, StateFile } from "./state.ts";

export type FoundTarget =
  | { readonly kind: "found"; readonly target: RunTarget }
  /** The workspace must be prepared first. */
  | { readonly kind: "unprepared"; readonly message: string }
  /** A retry cannot help, because the workspace must change. */
  | { readonly kind: "impossible"; readonly message: string };

type StackParts = Omit<StackContext, "signal">;

/**
 * Without a name, as in requests of version 1, the target is the only prepared stack. An outdated request to prepare may arrive
 * after its replacement, so the run names the one whose result it needs.
 */
export async function findTarget(
  request: Pick<StartRequest, "stack" | "preparation">,
  state: StateFile,
  parts: StackParts,
): Promise<FoundTarget> {
  const { ready } = await state.read();
  if (!ready) return { kind: "unprepared", message: "the workspace is not prepared" };
  const { stacks, root: _, preparation, ...common } = ready;
  if (request.preparation !== undefined && request.preparation !== preparation)
    return { kind: "unprepared", message: "the workspace is not prepared for this run" };
  const stack = request.stack ?? (stacks.length === 1 ? stacks[0]?.name : undefined);
  if (stack === undefined)
    return {
      kind: "unprepared",
      message: "the request names no stack, and the workspace is not prepared for exactly one",
    };
  const listed = stacks.find(({ name }) => name === stack);
  if (listed) return { kind: "found", target: { ...common, stack, settings: listed.settings } };
  if (stacks.length > 0) {
    const names = stacks.map(({ name }) => name).join(", ");
    return { kind: "unprepared", message: `the workspace is prepared for ${names}, not for ${stack}` };
  }
  if (!(await isDirectory(ready.projectFolder)))
    return { kind: "unprepared", message: "the program's folder does not exist" };
  const settings = await configureUnlisted(stack, ready, parts);
  return settings.ok
    ? { kind: "found", target: { ...common, stack, settings: settings.value, unlisted: true } }
    : { kind: "impossible", message: parts.cli.redactor.clean(settings.failure.message) };
}

async function configureUnlisted(
  name: string,
  { projectFolder, root }: Ready,
  parts: StackParts,
): Promise<Outcome<string>> {
  // Without configuration there is nothing to encrypt, so no command runs that would need a signal.
  const context = { ...parts, signal: new AbortController().signal };
  const project = await loadProject(projectFolder, root);
  if (!project.ok) return project;
  const stack = { name, create: false, config: [], environments: [] };
  const paths = stackPaths(project.value, stack, context);
  if (!paths.ok) return paths;
  const configured = await configureStack(project.value, stack, context);
  return configured.ok ? done(paths.value.settings) : configured;
}
