import { join } from "node:path";

import { expect, test } from "bun:test";

const program = `
  import { exitWhenWritten } from ${JSON.stringify(join(import.meta.dir, "exit.ts"))};
  for (let i = 0; i < 300; i++) for (const stream of [process.stdout, process.stderr]) stream.write("x".repeat(1000) + "\\n");
  await exitWhenWritten(3);`;

/** What the reader of both streams prints, and the exit code of the program. */
async function run(reader: string): Promise<string> {
  const script = `set -o pipefail; "$0" -e "$1" 2>&1 | ${reader}; echo "exit code $?"`;
  const child = Bun.spawn(["bash", "-c", script, process.execPath, program], { stdin: "ignore", stdout: "pipe" });
  return await new Response(child.stdout).text();
}

test("everything is written if the reader is slow", async () => {
  expect(await run("{ sleep 1; wc -l; }")).toBe("600\nexit code 3\n");
}, 60_000);

test("the process ends if its reader has ended", async () => {
  expect(await run("true")).toBe("exit code 3\n");
}, 60_000);

test("the process ends if its reader never reads", async () => {
  // The shell keeps the pipe open for reading.
  const script = `pipe=$(mktemp -u) && mkfifo "$pipe" && exec 3<>"$pipe" && rm "$pipe" && "$0" -e "$1" >&3 2>&1; echo "exit code $?"`;
  const child = Bun.spawn(["bash", "-c", script, process.execPath, program], { stdin: "ignore", stdout: "pipe" });
  expect(await new Response(child.stdout).text()).toBe("exit code 3\n");
}, 60_000);
