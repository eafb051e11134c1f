/** What has been done in this workspace, kept on its volume: an agent that starts again goes on from there. */
import { join } from "node:path";
import { checkValue, ProjectInfo } from "../../../rpc/src/index.ts";
import { Type, type Static } from "typebox";
import { readIfThere, writeAtomically } from "../system/files.ts";

/** All that a run needs. */
export const Ready = Type.Object({
  revision: Type.String(),
  stack: Type.String(),
  project: ProjectInfo,
  projectFolder: Type.String(),
  settings: Type.String(),
  /** What the project file says of it. */
  backend: Type.Optional(Type.String()),
});
export type Ready = Static<typeof Ready>;

export const WorkspaceState = Type.Object({
  /** What is checked out; absent while a checkout is under way. */
  source: Type.Optional(
    Type.Object({ key: Type.Optional(Type.String()), revision: Type.String(), folder: Type.String() }),
  ),
  /** The dependencies that are installed, and where. */
  installed: Type.Optional(Type.String()),
  /** The stack that the backend is known to have, and what its owner should know of it. */
  selected: Type.Optional(Type.Object({ key: Type.String(), warning: Type.Optional(Type.String()) })),
  /** Absent when any step since has failed. */
  ready: Type.Optional(Ready),
});
export type WorkspaceState = Static<typeof WorkspaceState>;

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
    const parsed = checkValue(WorkspaceState, JSON.parse(text));
    return parsed.ok ? parsed.value : {};
  } catch {
    return {};
  }
}
