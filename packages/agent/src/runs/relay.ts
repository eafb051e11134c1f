/** What a command of the CLI prints, line by line, into the container's log while it runs. */
import { errorMessage } from "@pko/rpc";
import type { Clean } from "../system/clean-text.ts";
import type { Log } from "../system/log.ts";
import type { Launched } from "./launcher.ts";
import { tailLines } from "./tail.ts";

interface RelayOptions {
  readonly files: readonly string[];
  readonly pollMs: number;
  /** A whole line at a time: a secret that is split between two reads is still found. */
  readonly clean: (text: string) => Clean;
  readonly log: Log;
}

/** A longer line stays in its file: to cut it before it is cleaned could cut a secret in two. */
const maxLineBytes = 64 * 1024;
/** Of each file. The kubelet keeps some 10 MiB of a container's log by default; a program that prints without end must not hold up its run. */
const most = { lines: 100_000, chars: 16 * 1024 * 1024 };

/** A run does not fail because its output cannot be shown. */
export async function relayOutput({ over }: Pick<Launched, "over">, options: RelayOptions): Promise<void> {
  const { files, pollMs, clean, log } = options;
  const relay = async (path: string): Promise<void> => {
    let [lines, chars] = [0, 0];
    for await (const line of tailLines({ path, maxLineBytes, pollMs, over, keepsLast: true })) {
      if (line.kind === "line") log.printed(clean(line.text.trimEnd()));
      else log.info("printed line too long for the log", { bytes: line.bytes, file: path });
      lines += 1;
      chars += line.kind === "line" ? line.text.length : 0;
      if (lines >= most.lines || chars >= most.chars) {
        log.warn("printed output too long for the log", { lines, file: path });
        return;
      }
    }
  };
  try {
    await Promise.all(files.map(relay));
  } catch (error) {
    log.warn("printed output not read", { error: errorMessage(error) });
  }
}
