/** The workspace's state, stored on its volume, so that a restarted agent continues from it. */
import { join } from "node:path";
import { checkValue, ProjectInfo } from "@pko/rpc";
import { Type, type Static } from "typebox";
import { readIfExists, writeAtomically } from "../system/files.ts";

/** What a run uses. It is part of the run's record, so that it does not change during the run. */
export const RunTarget = Type.Object({
  revision: Type.String(),
  stack: Type.String(),
  project: ProjectInfo,
  projectFolder: Type.String(),
  /** The CLI's `--config-file`. */
  settings: Type.String(),
  /** The backend in the project file. */
  backend: Type.Optional(Type.String()),
  /** Identifies the source's files; absent for a folder that is used in place. */
  contents: Type.Optional(Type.String()),
  /** True for the program of a Program object. */
  isProgram: Type.Optional(Type.Boolean()),
  /** True for a stack that the workspace does not list: it is never created. */
  unlisted: Type.Optional(Type.Boolean()),
});
export type RunTarget = Static<typeof RunTarget>;

/** What is prepared for runs. */
export const Ready = Type.Object({
  /** Identifies the request; absent in the state of an earlier agent version. */
  preparation: Type.Optional(Type.String()),
  revision: Type.String(),
  project: ProjectInfo,
  projectFolder: Type.String(),
  /** The root of the source that contains the project. */
  root: Type.String(),
  backend: Type.Optional(Type.String()),
  contents: Type.Optional(Type.String()),
  isProgram: Type.Optional(Type.Boolean()),
  /** The stacks that the workspace lists. If it lists none, a run may name any stack that exists. */
  stacks: Type.Array(Type.Object({ name: Type.String(), settings: Type.String() })),
});
export type Ready = Static<typeof Ready>;

const SelectedStack = Type.Object({
  stack: Type.String(),
  /** Identifies the selection (pulumi/stack.ts). */
  key: Type.String(),
  warning: Type.Optional(Type.String()),
});
export type SelectedStack = Static<typeof SelectedStack>;

const sourceFields = {
  /** The current checkout; absent during a checkout. */
  source: Type.Optional(
    Type.Object({
      key: Type.Optional(Type.String()),
      revision: Type.String(),
      folder: Type.String(),
      contents: Type.Optional(Type.String()),
    }),
  ),
  /** The project's folder and the key of its installed dependencies. */
  installed: Type.Optional(Type.String()),
};

export const WorkspaceState = Type.Object({
  ...sourceFields,
  /** The stacks that are selected in the backend, with warnings for their owner. */
  selected: Type.Optional(Type.Array(SelectedStack)),
  /** Absent if the latest preparation failed. */
  ready: Type.Optional(Ready),
});
/** An interface, because the compiler reports the alias as excessively deep where it resolves it first. */
export interface WorkspaceState extends Static<typeof WorkspaceState> {}

/** The format of earlier agents, when a workspace had exactly one stack. */
const SingleStackState = Type.Object({
  ...sourceFields,
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
    this.#state ??= parseState(await readIfExists(this.#path));
    return this.#state;
  }

  /** Written to disk before it takes effect. */
  async write(state: WorkspaceState): Promise<void> {
    await writeAtomically(this.#path, JSON.stringify(state));
    this.#state = state;
  }
}

/** An unreadable file counts as missing: all steps are repeated. */
function parseState(text: string | undefined): WorkspaceState {
  if (text === undefined) return {};
  try {
    const content: unknown = JSON.parse(text);
    const parsed = checkValue(WorkspaceState, content);
    if (parsed.ok) return parsed.value;
    const old = checkValue(SingleStackState, content);
    return old.ok ? upgrade(old.value) : {};
  } catch {
    return {};
  }
}

function upgrade({ ready, selected, ...rest }: Static<typeof SingleStackState>): WorkspaceState {
  // A selection without the stack's name is useless: the stack is selected again.
  if (!ready) return rest;
  const { stack, settings, ...prepared } = ready;
  return {
    ...rest,
    ready: { ...prepared, root: ready.projectFolder, stacks: [{ name: stack, settings }] },
    ...(selected && { selected: [{ stack, ...selected }] }),
  };
}
