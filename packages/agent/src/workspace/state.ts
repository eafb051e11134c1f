/** What has been done in this workspace, kept on its volume: an agent that starts again goes on from there. */
import { join } from "node:path";
import { checkValue, ProjectInfo } from "@pko/rpc";
import { Type, type Static } from "typebox";
import { readIfThere, writeAtomically } from "../system/files.ts";

/** What a run works on; a part of its record, so that it does not change while the run lasts. */
export const RunTarget = Type.Object({
  revision: Type.String(),
  stack: Type.String(),
  project: ProjectInfo,
  projectFolder: Type.String(),
  /** What the CLI gets as `--config-file`. */
  settings: Type.String(),
  /** What the project file says of it. */
  backend: Type.Optional(Type.String()),
  /** True for a stack that the workspace does not list: nobody has asked for its creation. */
  unlisted: Type.Optional(Type.Boolean()),
});
export type RunTarget = Static<typeof RunTarget>;

/** What is prepared for runs. */
export const Ready = Type.Object({
  revision: Type.String(),
  project: ProjectInfo,
  projectFolder: Type.String(),
  /** The top of the source, which the project is in. */
  root: Type.String(),
  backend: Type.Optional(Type.String()),
  /** The stacks that the workspace lists. If it lists none, a run may name any stack that exists. */
  stacks: Type.Array(Type.Object({ name: Type.String(), settings: Type.String() })),
});
export type Ready = Static<typeof Ready>;

const SelectedStack = Type.Object({
  stack: Type.String(),
  /** What the backend was asked for. */
  key: Type.String(),
  warning: Type.Optional(Type.String()),
});
export type SelectedStack = Static<typeof SelectedStack>;

const places = {
  /** What is checked out; absent while a checkout is under way. */
  source: Type.Optional(
    Type.Object({ key: Type.Optional(Type.String()), revision: Type.String(), folder: Type.String() }),
  ),
  /** The dependencies that are installed, and where. */
  installed: Type.Optional(Type.String()),
};

export const WorkspaceState = Type.Object({
  ...places,
  /** The stacks that the backend is known to have, and what their owner should know of them. */
  selected: Type.Optional(Type.Array(SelectedStack)),
  /** Absent when any step since has failed. */
  ready: Type.Optional(Ready),
});
export type WorkspaceState = Static<typeof WorkspaceState>;

/** As agents wrote it while a workspace had exactly one stack. */
const SingleStackState = Type.Object({
  ...places,
  selected: Type.Optional(Type.Object({ key: Type.String(), warning: Type.Optional(Type.String()) })),
  ready: Type.Optional(RunTarget),
});

export class StateFile {
  readonly #path: string;
  #state: WorkspaceState | undefined;

  constructor(folder: string) {
    this.#path = join(folder, "state.json");
  }

  async read(): Promise<WorkspaceState> {
    this.#state ??= parseState(await readIfThere(this.#path));
    return this.#state;
  }

  /** On disk before it is believed. */
  async write(state: WorkspaceState): Promise<void> {
    await writeAtomically(this.#path, JSON.stringify(state));
    this.#state = state;
  }
}

/** A file that cannot be read is as good as none: everything is done again. */
function parseState(text: string | undefined): WorkspaceState {
  if (text === undefined) return {};
  try {
    const content: unknown = JSON.parse(text);
    const parsed = checkValue(WorkspaceState, content);
    if (parsed.ok) return parsed.value;
    const old = checkValue(SingleStackState, content);
    return old.ok ? upgraded(old.value) : {};
  } catch {
    return {};
  }
}

function upgraded({ ready, selected, ...rest }: Static<typeof SingleStackState>): WorkspaceState {
  // A selection without the name of its stack is of no use: the backend is asked again.
  if (!ready) return rest;
  const { stack, settings, ...prepared } = ready;
  return {
    ...rest,
    ready: { ...prepared, root: ready.projectFolder, stacks: [{ name: stack, settings }] },
    ...(selected && { selected: [{ stack, ...selected }] }),
  };
}
