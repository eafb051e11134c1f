/** Connects the person's terminal with a command in a pod. */
import type { Credentials, ObjectRef, TerminalInput } from "@pko/kube";
import { execTerminal } from "@pko/kube";

interface Attached {
  readonly credentials: Credentials;
  readonly ref: ObjectRef;
  readonly container: string;
  readonly command: readonly string[];
  readonly signal: AbortSignal;
  /** Called when the command has started. */
  readonly opened: () => void;
}

/** In raw mode: every key, also Ctrl-C, is sent to the command. Returns the exit code of the command. */
export async function attachTerminal(attached: Attached): Promise<number> {
  const { credentials, ref, container, command, signal, opened } = attached;
  const { stdin, stdout } = process;
  let input: TerminalInput | undefined;
  const typed = (bytes: Uint8Array): void => input?.write(bytes);
  const resized = (): void => input?.resize({ columns: stdout.columns, rows: stdout.rows });
  stdin.setRawMode(true);
  stdin.resume();
  stdin.on("data", typed);
  stdout.on("resize", resized);
  try {
    return await execTerminal(credentials, ref, {
      container,
      command,
      signal,
      output: (bytes) => void stdout.write(bytes),
      opened(session) {
        input = session;
        opened();
        resized();
      },
    });
  } finally {
    stdin.off("data", typed);
    stdout.off("resize", resized);
    stdin.setRawMode(false);
    stdin.pause();
  }
}
