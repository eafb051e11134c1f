/** The pictures of the README: what a real terminal showed. UPDATE_GOLDEN=1 rewrites them. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { repositoryRoot } from "@pko/cluster";

import { recording, type Shot } from "../../../packages/cli/src/testing/recording.ts";

/** Of the terminal, in characters. */
export const pictureSize = { columns: 80, rows: 16 };

const [promptSeconds, frameSeconds, resultSeconds] = [1, 0.7, 6];

/** `output` is everything that the command printed to its terminal. */
export function updatePicture(command: string, output: string): void {
  if (!process.env["UPDATE_GOLDEN"]) return;
  const [name = ""] = command.split(" ");
  const text = recording(shotsOf(command, output), pictureSize);
  writeFileSync(join(repositoryRoot, "docs/images", `${name}.svg`), text);
}

/** One shot for each frame that was drawn in place of the one before, without those in which only times have changed. */
function shotsOf(command: string, output: string): Shot[] {
  const shots: { output: string; seconds: number }[] = [];
  let before = "";
  // oxlint-disable-next-line no-control-regex -- it parses control sequences
  for (const frame of output.split(/(?=\u001B\[\d+A)/)) {
    const content = frame.replaceAll(/[\d.]+m?s/g, "");
    const last = shots.at(-1);
    if (last && content === before) last.output += frame;
    else shots.push({ output: frame, seconds: frameSeconds });
    before = content;
  }
  const result = shots.pop()?.output ?? "";
  const prompt = { output: `$ kubectl pulumi ${command}\n`, seconds: promptSeconds };
  return [prompt, ...shots, { output: result, seconds: resultSeconds }];
}
