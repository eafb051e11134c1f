/** The pictures of the README: what a real terminal showed. UPDATE_GOLDEN=1 rewrites them. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { repositoryRoot } from "@pko/cluster";

import { recording, type Shot } from "../../../packages/cli/src/testing/recording.ts";

/** Of the terminal, in characters. */
export const pictureSize = { columns: 80, rows: 16 };

const mostFrames = 16;
const [promptSeconds, frameSeconds, resultSeconds] = [1, 0.7, 6];

/** `output` is everything that the command printed to its terminal. */
export function updatePicture(command: string, output: string): void {
  if (!process.env["UPDATE_GOLDEN"]) return;
  const [name = ""] = command.split(" ");
  const text = recording(shotsOf(command, output), pictureSize);
  writeFileSync(join(repositoryRoot, "docs/images", `${name}.svg`), text);
}

/** One shot for each frame that was drawn in place of the one before. */
function shotsOf(command: string, output: string): Shot[] {
  // oxlint-disable-next-line no-control-regex -- it parses control sequences
  const frames = output.split(/(?=\u001B\[\d+A)/);
  const every = Math.ceil(frames.length / mostFrames);
  const shots = chunked(frames, every).map((parts) => ({ output: parts.join(""), seconds: frameSeconds }));
  const last = shots.pop() ?? { output: "" };
  return [
    { output: `$ kubectl pulumi ${command}\n`, seconds: promptSeconds },
    ...shots,
    { ...last, seconds: resultSeconds },
  ];
}

const chunked = <T>(all: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, (at + 1) * size));
