import { expect, setDefaultTimeout, test } from "bun:test";

setDefaultTimeout(180_000);

/** Runs testing/alarmed.ts, optionally freezes it for a while, and returns its output and how it ended. */
async function run(mode: "forget" | "clear" | "renew", frozenMs = 0): Promise<{ output: string; signal: unknown }> {
  const script = new URL("../../testing/alarmed.ts", import.meta.url).pathname;
  const child = Bun.spawn([process.execPath, script, mode], { stdout: "pipe", stderr: "inherit" });
  let output = "";
  for await (const chunk of child.stdout) {
    if (output === "" && frozenMs > 0) {
      child.kill("SIGSTOP");
      await Bun.sleep(frozenMs);
      child.kill("SIGCONT");
    }
    output += new TextDecoder().decode(chunk);
  }
  await child.exited;
  return { output, signal: child.signalCode };
}

test.concurrent("ends a process that does not reset it", async () => {
  expect(await run("forget")).toEqual({ output: "set\n", signal: "SIGALRM" });
});

test.concurrent("does not end a process that resets or clears it", async () => {
  expect(await Promise.all([run("renew"), run("clear")])).toEqual([
    { output: "set\ncontinued\n", signal: null },
    { output: "set\ncontinued\n", signal: null },
  ]);
});

test.concurrent("ends a process that was frozen for too long before it runs on", async () => {
  expect(await run("renew", 16_500)).toEqual({ output: "set\n", signal: "SIGALRM" });
});
