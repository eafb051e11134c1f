/** Copies the CLI's output, line by line, to the container's log while a command runs. */
import type { Clean } from "../system/clean-text.ts";
import type { Log } from "../system/log.ts";
import type { Launched } from "./launcher.ts";
import { tailLines } from "./tail.ts";

interface RelayOptions {
  readonly files: readonly string[];
  readonly pollMs: number;
  /** Gets complete lines, so that a secret that is split between two reads is found. */
  readonly clean: (text: string) => Clean;
  /** Whether nothing after this line may be shown. */
  readonly isLast?: (text: string) => boolean;
  readonly log: Log;
}

/** A longer line stays in its file, because truncating it before cleaning could cut a secret in two. */
const maxLineBytes = 64 * 1024;
/** Limits per file. By default the kubelet keeps about 10 MiB of a container's log, and endless output must not slow down the run. */
const limits = { lines: 100_000, chars: 16 * 1024 * 1024 };

/** Never rejects: a run must not fail because its output cannot be shown. */
export async function relayOutput({ over }: Pick<Launched, "over">, options: RelayOptions): Promise<void> {
  const { files, pollMs, clean, log, isLast } = options;
  const relay = async (path: string): Promise<void> => {
    let [lines, chars] = [0, 0];
    for await (const line of tailLines({ path, maxLineBytes, pollMs, over, keepsLast: true })) {
      if (line.kind === "line") log.printed(clean(line.text.trimEnd()));
      else log.info("line is too long for the log", { bytes: line.bytes, file: path });
      // A line that is too long was not kept, so whether it is the last is unknown.
      if (isLast && (line.kind === "tooLong" || isLast(line.text))) {
        log.info("the rest of the output is not shown, because it may contain secrets");
        return;
      }
      lines += 1;
      chars += line.kind === "line" ? line.text.length : 0;
      if (lines >= limits.lines || chars >= limits.chars) {
        log.warn("output is too long for the log", { lines, file: path });
        return;
      }
    }
  };
  try {
    await Promise.all(files.map(relay));
  } catch (error) {
    log.warn("cannot read the output", { error });
  }
}
