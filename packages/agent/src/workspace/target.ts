/**
 * What a run of a stack needs. A stack that the workspace lists was prepared with it. If the workspace lists none, a run
 * may name any stack that exists: it runs with the settings that the source has for it, and it is never created.
 */
import { done, type Outcome } from "../outcome.ts";
import { loadProject } from "../pulumi/project.ts";
import { configureStack, placeOf, type StackContext } from "../pulumi/stack.ts";
import { isDirectory } from "../system/files.ts";
import type { Ready, RunTarget, StateFile } from "./state.ts";

export type FoundTarget =
  | { readonly kind: "found"; readonly target: RunTarget }
  /** Not now: the workspace has to be prepared first. */
  | { readonly kind: "unprepared"; readonly message: string }
  /** Never, as the workspace is. */
  | { readonly kind: "impossible"; readonly message: string };

type StackParts = Omit<StackContext, "signal">;

/** Without a name, as operators of version 1 ask, it is the only stack that is prepared. */
export async function findTarget(named: string | undefined, state: StateFile, parts: StackParts): Promise<FoundTarget> {
  const { ready } = await state.read();
  if (!ready) return { kind: "unprepared", message: "the workspace is not prepared" };
  const { stacks, root: _, ...common } = ready;
  const stack = named ?? (stacks.length === 1 ? stacks[0]?.name : undefined);
  if (stack === undefined)
    return { kind: "unprepared", message: "the workspace is not prepared for exactly one stack" };
  const listed = stacks.find(({ name }) => name === stack);
  if (listed) return { kind: "found", target: { ...common, stack, settings: listed.settings } };
  if (stacks.length > 0) {
    const names = stacks.map(({ name }) => name).join(", ");
    return { kind: "unprepared", message: `the workspace is prepared for ${names}, not for ${stack}` };
  }
  if (!(await isDirectory(ready.projectFolder))) return { kind: "unprepared", message: "the program is not there" };
  const settings = await settingsOfUnlisted(stack, ready, parts);
  return settings.ok
    ? { kind: "found", target: { ...common, stack, settings: settings.value, unlisted: true } }
    : { kind: "impossible", message: parts.cli.redactor.clean(settings.failure.message) };
}

async function settingsOfUnlisted(
  name: string,
  { projectFolder, root }: Ready,
  parts: StackParts,
): Promise<Outcome<string>> {
  // Without configuration of the workspace there is nothing to encrypt: no command is started that would need a signal.
  const context = { ...parts, signal: new AbortController().signal };
  const project = await loadProject(projectFolder, root);
  if (!project.ok) return project;
  const stack = { name, create: false, config: [], environments: [] };
  const place = placeOf(project.value, stack, context);
  if (!place.ok) return place;
  const configured = await configureStack(project.value, stack, context);
  return configured.ok ? done(place.value.settings) : configured;
}
